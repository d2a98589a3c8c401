"""`trueup diff LEFT RIGHT`: whether two sides agree, and where they do not. Needs no state and no project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from trueup.cli.question import Answer
    from trueup.compare.analysis.result import Analysis

_SELECT: Final = "What is compared"
_JUDGE: Final = "How values are judged"
_FILES: Final = "Files"
_DATABASES: Final = "Databases"
_OUTPUT: Final = "Output"

Many = list[str] | None


def _option(*names: str, panel: str, help: str, metavar: str | None = None) -> Any:  # noqa: A002
    return typer.Option(*names, metavar=metavar, help=help, rich_help_panel=panel)


Left = Annotated[str, typer.Argument(metavar="LEFT", help="A table (shop.db#orders, postgresql://…#orders) or a file.")]
Right = Annotated[str, typer.Argument(metavar="RIGHT", help="What LEFT is compared with.")]

_KEY = "Key column; repeat it, or write a comma list. By default the primary key that both tables have."
Key = Annotated[Many, _option("--key", "-k", metavar="NAME", panel=_SELECT, help=_KEY)]
Columns = Annotated[Many, _option("--columns", metavar="NAME", panel=_SELECT, help="Compare only these columns.")]
Ignore = Annotated[Many, _option("--ignore", metavar="NAME", panel=_SELECT, help="Do not compare these columns.")]
_MAP = "A column that has another name on the right."
Map = Annotated[Many, _option("--map", metavar="LEFT=RIGHT", panel=_SELECT, help=_MAP)]
_WHERE = "SQL condition for both sides, files included; the condition of one side is added to it."
Where = Annotated[str | None, _option("--where", metavar="SQL", panel=_SELECT, help=_WHERE)]
_ON = "Have an engine read and match both sides: spark, for Parquet files, Delta and Iceberg tables."
On = Annotated[str | None, _option("--on", metavar="ENGINE", panel=_SELECT, help=_ON)]
_LEFT, _RIGHT = "SQL condition for the left side.", "SQL condition for the right side."
WhereLeft = Annotated[str | None, _option("--where-left", metavar="SQL", panel=_SELECT, help=_LEFT)]
WhereRight = Annotated[str | None, _option("--where-right", metavar="SQL", panel=_SELECT, help=_RIGHT)]

_TOLERANCE = "Let values differ by this much: price=0.01, price=1% (of the left value), seen_at=2s."
Tolerance = Annotated[Many, _option("--tolerance", metavar="NAME=SIZE", panel=_JUDGE, help=_TOLERANCE)]
_PLACES = "Round decimals to N places before they are compared."
Places = Annotated[Many, _option("--places", metavar="NAME=N", panel=_JUDGE, help=_PLACES)]
_FOLD = "Compare text without blanks around it (trim), without case (case), in Unicode form C (nfc): city=trim,case."
Fold = Annotated[Many, _option("--fold", metavar="NAME=HOW", panel=_JUDGE, help=_FOLD)]
_TYPE = "Compare a column as this kind: integer, decimal, float, boolean, text, date, timestamp, instant, uuid, json, …"
Type = Annotated[Many, _option("--type", metavar="NAME=KIND", panel=_JUDGE, help=_TYPE)]
_ZONE = "Time zone of wall-clock times, such as left=Europe/Berlin."
Zone = Annotated[Many, _option("--zone", metavar="[SIDE=]ZONE", panel=_JUDGE, help=_ZONE)]

_FORMAT = "csv, jsonl or parquet, where the suffix does not say it; output=csv for --output -."
Format = Annotated[Many, _option("--format", metavar="[SIDE=]FORMAT", panel=_FILES, help=_FORMAT)]
_ENCODING = "Encoding of text files; utf-8 by default."
Encoding = Annotated[Many, _option("--encoding", metavar="[SIDE=]NAME", panel=_FILES, help=_ENCODING)]
_DELIMITER = "What separates the values of CSV files; , by default."
Delimiter = Annotated[Many, _option("--delimiter", metavar="[SIDE=]CHAR", panel=_FILES, help=_DELIMITER)]
_DECIMAL = "Decimal mark of numbers in CSV files; . by default."
DecimalMark = Annotated[Many, _option("--decimal", metavar="[SIDE=]CHAR", panel=_FILES, help=_DECIMAL)]
_THOUSANDS = "Mark between thousands in CSV files; none by default."
Thousands = Annotated[Many, _option("--thousands", metavar="[SIDE=]CHAR", panel=_FILES, help=_THOUSANDS)]
_NULL = "A text that means null in CSV files, such as NA; repeat it for more."
Null = Annotated[Many, _option("--null", metavar="[SIDE=]TEXT", panel=_FILES, help=_NULL)]

_CONNECTIONS = "Statements at a time for each side, on PostgreSQL; 2 by default."
Connections = Annotated[Many, _option("--connections", metavar="[SIDE=]N", panel=_DATABASES, help=_CONNECTIONS)]
_TIMEOUT = "Have the database end a statement that takes longer, such as 60s; by default its own limit."
Timeout = Annotated[Many, _option("--timeout", metavar="[SIDE=]TIME", panel=_DATABASES, help=_TIMEOUT)]
_THROTTLE = "The share of the time in which a connection may read, such as 25%; then it rests."
Throttle = Annotated[Many, _option("--throttle", metavar="[SIDE=]SHARE", panel=_DATABASES, help=_THROTTLE)]

_STRATEGY = "Force gate, segments, keyhash, sketch, match or rows; by default the one that seems fastest here."
Strategy = Annotated[str | None, _option("--strategy", metavar="NAME", panel=_OUTPUT, help=_STRATEGY)]
_MEMORY = "Memory for the comparison; what does not fit goes to disk."
Memory = Annotated[str, _option("--memory", metavar="SIZE", panel=_OUTPUT, help=_MEMORY)]
_LIMIT = "List at most this many differences; 0 for all. Counts are always complete."
Limit = Annotated[int, typer.Option("--limit", "-n", metavar="N", min=0, rich_help_panel=_OUTPUT, help=_LIMIT)]
Json = Annotated[bool, _option("--json", panel=_OUTPUT, help="Print one JSON object.")]
Explain = Annotated[
    bool, _option("--explain", panel=_OUTPUT, help="Say how it was compared, why so, and what was read.")
]
_EXPLAIN_SQL = "The same, and the statements that databases were asked, without values."
ExplainSql = Annotated[bool, _option("--explain-sql", panel=_OUTPUT, help=_EXPLAIN_SQL)]
_ANALYSIS = "Do not say where the differences lie and what probably made them."
NoAnalysis = Annotated[bool, _option("--no-analysis", panel=_OUTPUT, help=_ANALYSIS)]
_HTML = "Write a page that needs nothing else, with all of this, to a file."
HtmlFile = Annotated[str | None, _option("--html", metavar="FILE", panel=_OUTPUT, help=_HTML)]
_WRITE = "Write every difference to FILE, by its suffix: .jsonl, .csv or .parquet; repeat it for more. - is stdout."
Output = Annotated[Many, _option("--output", "-o", metavar="FILE", panel=_OUTPUT, help=_WRITE)]
_EMIT = "Write statements that would make RIGHT equal to LEFT, to read; nothing is run. - is stdout."
EmitSql = Annotated[str | None, _option("--emit-sql", metavar="FILE", panel=_OUTPUT, help=_EMIT)]
_REDACT = "Show no value of this column, only that it differs; repeat it, or write a comma list."
Redact = Annotated[Many, _option("--redact", metavar="NAME", panel=_OUTPUT, help=_REDACT)]
Quiet = Annotated[bool, _option("--quiet", "-q", panel=_OUTPUT, help="Print nothing: the exit code is the answer.")]


def diff(
    left: Left,
    right: Right,
    key: Key = None,
    columns: Columns = None,
    ignore: Ignore = None,
    map: Map = None,  # noqa: A002  the option's name
    where: Where = None,
    where_left: WhereLeft = None,
    where_right: WhereRight = None,
    on: On = None,
    tolerance: Tolerance = None,
    places: Places = None,
    fold: Fold = None,
    type: Type = None,  # noqa: A002  the option's name
    zone: Zone = None,
    format: Format = None,  # noqa: A002  the option's name
    encoding: Encoding = None,
    delimiter: Delimiter = None,
    decimal: DecimalMark = None,
    thousands: Thousands = None,
    null: Null = None,
    connections: Connections = None,
    timeout: Timeout = None,
    throttle: Throttle = None,
    strategy: Strategy = None,
    memory: Memory = "512MB",
    limit: Limit = 20,
    json: Json = False,
    explain: Explain = False,
    explain_sql: ExplainSql = False,
    no_analysis: NoAnalysis = False,
    html: HtmlFile = None,
    output: Output = None,
    emit_sql: EmitSql = None,
    redact: Redact = None,
    quiet: Quiet = False,
) -> int:
    """Compare two tables or files.

    Missing: only in LEFT. Extra: only in RIGHT. Differ: in both, with other values. Duplicate: a key that one
    side holds more than once. The exit code is 0 where both agree, 1 where they differ, 2 where neither is known.
    """
    from trueup.cli import diff_files, diff_json, diff_text, options  # noqa: PLC0415
    from trueup.cli.question import Question  # noqa: PLC0415

    explain = explain or explain_sql
    sides_format, streamed = diff_files.parted(format or ())
    written = diff_files.asked(
        output or (), emit_sql, streamed, (left, right), page=html, talks=json or explain, hidden=redact or ()
    )
    files = {"format": sides_format, "encoding": encoding, "delimiter": delimiter, "decimal": decimal}
    files |= {"thousands": thousands, "null": null}
    question = Question(
        key=options.names(key or ()),
        columns=options.names(columns or ()) or None,
        ignore=options.names(ignore or ()),
        rename=options.assignments(map or (), "--map", "total=amount"),
        rules=options.rules(tolerance or (), places or (), fold or ()),
        kinds=options.assignments(type or (), "--type", "price=decimal"),
        where=options.conditions(where, where_left, where_right),
        zone=options.one_by_side(zone or (), "--zone"),
        limits=options.limits(connections=connections, timeout=timeout, throttle=throttle),
        files={name: options.by_side(given or (), f"--{name}", many=name == "null") for name, given in files.items()},
        strategy=strategy,
        memory_mb=options.megabytes(memory),
        on=on,
        redact=options.names(redact or ()),
    )
    with question.answer(left, right, follow=not quiet) as answer:
        diff_files.write(written, answer, (left, right))
        quiet = quiet or written.to_stdout
        wanted = not no_analysis and (json or not quiet or html is not None)
        analysis = answer.analysis() if wanted else None
        _write_page(html, answer, analysis)
        if json:
            diff_json.show(answer, limit or None, analysis)
        elif not quiet:
            diff_text.show(answer, limit or None, explain=explain, statements=explain_sql, analysis=analysis)
        return 0 if answer.agree else 1


def _write_page(to: str | None, answer: Answer, analysis: Analysis | None) -> None:
    if to is None:
        return
    from trueup.cli.diff_page import page  # noqa: PLC0415
    from trueup.compare.target import whole_file  # noqa: PLC0415
    from trueup.engine.clock import SystemClock  # noqa: PLC0415

    with whole_file(to) as file:
        file.write(page(answer, analysis, SystemClock().now_us()).encode())
