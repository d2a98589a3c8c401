"""The tables of a state store, as numbered steps. A step that was released is never edited: add another.

Steps only add, so that programs that are already running survive the upgrade of the store they use.
"""

from __future__ import annotations

from typing import Final

from trueup.model.evidence import GENESIS
from trueup.stores.sql import alerts, anchors, tallies, trends
from trueup.stores.sql.steps import Step

SQLITE: Final[tuple[Step, ...]] = (
    Step(
        """
        CREATE TABLE trueup_row (
            id INTEGER PRIMARY KEY,
            pair TEXT NOT NULL,
            key TEXT NOT NULL,
            state TEXT NOT NULL DEFAULT 'idle',
            wish INTEGER NOT NULL DEFAULT 0,
            wish_action TEXT,
            wish_version INTEGER,
            wish_digest TEXT,
            wish_payload TEXT,
            wish_origin INTEGER NOT NULL DEFAULT 0,
            priority INTEGER NOT NULL DEFAULT 0,
            queued_at INTEGER NOT NULL DEFAULT 0,
            due_at INTEGER NOT NULL DEFAULT 0,
            refetch INTEGER NOT NULL DEFAULT 0,
            verify INTEGER NOT NULL DEFAULT 0,
            unsynced INTEGER NOT NULL DEFAULT 0,
            judged_replica TEXT,
            done_action TEXT,
            done_version INTEGER,
            done_digest TEXT,
            done_replica TEXT,
            done_at INTEGER,
            verified_until INTEGER NOT NULL DEFAULT 0,
            high INTEGER,
            unordered INTEGER NOT NULL DEFAULT 0,
            attempted TEXT,
            evicted INTEGER NOT NULL DEFAULT 0,
            lease_owner TEXT,
            lease_until INTEGER NOT NULL DEFAULT 0,
            fence INTEGER NOT NULL DEFAULT 0,
            revision INTEGER NOT NULL DEFAULT 0,
            touched_at INTEGER NOT NULL DEFAULT 0,
            tries INTEGER NOT NULL DEFAULT 0,
            last_error TEXT,
            park_reason TEXT,
            rejected INTEGER NOT NULL DEFAULT 0,
            waits_for TEXT,
            lagging TEXT,
            repairs INTEGER NOT NULL DEFAULT 0,
            ready_at INTEGER,
            UNIQUE (pair, key)
        )
        """,
        # ready_at is null unless the row is pending, so this index holds the queue and nothing else. It finds
        # expired leases too, because ready_at is the later of the due time and the end of the lease.
        """
        CREATE INDEX trueup_row_queue ON trueup_row (pair, priority, ready_at, queued_at, key)
        WHERE ready_at IS NOT NULL
        """,
        "CREATE INDEX trueup_row_parked ON trueup_row (pair, key) WHERE state = 'parked'",
        "CREATE INDEX trueup_row_waits ON trueup_row (waits_for) WHERE waits_for IS NOT NULL",
        "CREATE TABLE trueup_pair (pair TEXT PRIMARY KEY, settled INTEGER NOT NULL DEFAULT 0) WITHOUT ROWID",
        """
        CREATE TABLE trueup_history (
            id INTEGER PRIMARY KEY,
            record INTEGER NOT NULL,
            at INTEGER NOT NULL,
            what TEXT NOT NULL,
            detail TEXT NOT NULL
        )
        """,
        "CREATE INDEX trueup_history_record ON trueup_history (record)",
        """
        CREATE TABLE trueup_run (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            pair TEXT NOT NULL,
            what TEXT NOT NULL,
            started_us INTEGER NOT NULL,
            cutoff_us INTEGER,
            ended_us INTEGER,
            ended TEXT NOT NULL,
            error TEXT,
            counts TEXT NOT NULL
        )
        """,
        "CREATE INDEX trueup_run_pair ON trueup_run (pair, number)",
        "CREATE TABLE trueup_cursor (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
        """
        CREATE TABLE trueup_case (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            pair TEXT NOT NULL,
            key TEXT NOT NULL,
            drift TEXT NOT NULL,
            opened_us INTEGER NOT NULL,
            authority TEXT,
            replica TEXT,
            fields TEXT NOT NULL,
            ancestor TEXT,
            run INTEGER NOT NULL,
            detail TEXT NOT NULL,
            closed_us INTEGER,
            closed TEXT,
            extra TEXT NOT NULL
        )
        """,
        "CREATE INDEX trueup_case_pair ON trueup_case (pair, opened_us, number)",
        "CREATE UNIQUE INDEX trueup_case_open ON trueup_case (pair, key) WHERE closed_us IS NULL",
    ),
    Step(
        "CREATE TABLE trueup_system (name TEXT PRIMARY KEY, health TEXT NOT NULL) WITHOUT ROWID",
        "CREATE TABLE trueup_delivery (delivery TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID",
        "CREATE INDEX trueup_delivery_at ON trueup_delivery (at)",
        # The body comes last: what is asked of a letter before it does not read the pages it fills.
        """
        CREATE TABLE trueup_letter (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            source TEXT NOT NULL,
            received_us INTEGER NOT NULL,
            status INTEGER NOT NULL,
            reason TEXT NOT NULL,
            size INTEGER NOT NULL,
            kept INTEGER NOT NULL,
            headers TEXT NOT NULL,
            delivery TEXT,
            body BLOB NOT NULL
        )
        """,
        "CREATE INDEX trueup_letter_source ON trueup_letter (source, number)",
    ),
    Step(
        """
        CREATE TABLE trueup_worker (
            name TEXT PRIMARY KEY,
            host TEXT NOT NULL,
            pid INTEGER NOT NULL,
            threads INTEGER NOT NULL,
            pairs TEXT NOT NULL,
            stays INTEGER NOT NULL,
            ended INTEGER NOT NULL,
            started_us INTEGER NOT NULL,
            beat_us INTEGER NOT NULL
        ) WITHOUT ROWID
        """,
    ),
    Step(
        """
        CREATE TABLE trueup_slot (
            pair TEXT PRIMARY KEY,
            run INTEGER NOT NULL DEFAULT 0,
            owner TEXT NOT NULL DEFAULT '',
            fence INTEGER NOT NULL DEFAULT 0,
            lease_until INTEGER NOT NULL DEFAULT 0,
            refusals INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE trueup_piece (
            run INTEGER NOT NULL,
            number INTEGER NOT NULL,
            low TEXT,
            high TEXT,
            state TEXT NOT NULL,
            counts TEXT NOT NULL,
            owner TEXT NOT NULL,
            fence INTEGER NOT NULL,
            lease_until INTEGER NOT NULL,
            PRIMARY KEY (run, number)
        ) WITHOUT ROWID
        """,
        # The first open piece is found without passing over all that are done.
        "CREATE INDEX trueup_piece_open ON trueup_piece (run, number) WHERE state = 'open'",
        """
        CREATE TABLE trueup_suspect (
            run INTEGER NOT NULL,
            key TEXT NOT NULL,
            PRIMARY KEY (run, key)
        ) WITHOUT ROWID
        """,
        """
        CREATE TABLE trueup_item (
            run INTEGER NOT NULL,
            key TEXT NOT NULL,
            state TEXT NOT NULL,
            drift TEXT NOT NULL,
            verdict TEXT NOT NULL,
            removes INTEGER NOT NULL,
            action TEXT NOT NULL,
            version INTEGER,
            authority_digest TEXT,
            replica_digest TEXT,
            revision INTEGER NOT NULL,
            authority TEXT,
            replica TEXT,
            fields TEXT NOT NULL,
            PRIMARY KEY (run, key)
        )
        """,
        "CREATE INDEX trueup_item_state ON trueup_item (run, state, key)",
        "ALTER TABLE trueup_run ADD COLUMN done TEXT NOT NULL DEFAULT '[]'",
        "ALTER TABLE trueup_run ADD COLUMN memo TEXT NOT NULL DEFAULT '{}'",
        "ALTER TABLE trueup_run ADD COLUMN forgotten INTEGER NOT NULL DEFAULT 0",
        "CREATE INDEX trueup_run_kept ON trueup_run (ended_us) WHERE forgotten = 0",
        "ALTER TABLE trueup_schema ADD COLUMN needs INTEGER NOT NULL DEFAULT 0",
    ),
    Step(
        "ALTER TABLE trueup_case ADD COLUMN authority_digest TEXT",
        "ALTER TABLE trueup_case ADD COLUMN replica_digest TEXT",
        "ALTER TABLE trueup_case ADD COLUMN authority_version INTEGER",
        "ALTER TABLE trueup_case ADD COLUMN changed_us INTEGER",
        "ALTER TABLE trueup_case ADD COLUMN agreed_us INTEGER",
        "ALTER TABLE trueup_case ADD COLUMN revision INTEGER NOT NULL DEFAULT 0",
        "ALTER TABLE trueup_case ADD COLUMN assignee TEXT",
        "ALTER TABLE trueup_case ADD COLUMN due_us INTEGER",
        # Closed cases stay for ever; the open ones are found without passing over them.
        "CREATE INDEX trueup_case_waits ON trueup_case (pair, opened_us, number) WHERE closed_us IS NULL",
        "CREATE INDEX trueup_case_key ON trueup_case (pair, key, opened_us, number)",
        """
        CREATE TABLE trueup_comment (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            about INTEGER NOT NULL,
            person TEXT NOT NULL,
            text TEXT NOT NULL,
            at_us INTEGER NOT NULL
        )
        """,
        "CREATE INDEX trueup_comment_about ON trueup_comment (about, number)",
        """
        CREATE TABLE trueup_decision (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            id TEXT NOT NULL UNIQUE,
            about INTEGER NOT NULL,
            choice TEXT NOT NULL,
            person TEXT NOT NULL,
            reason TEXT NOT NULL,
            shown TEXT NOT NULL,
            edited TEXT,
            until_us INTEGER,
            state TEXT NOT NULL,
            note TEXT NOT NULL,
            at_us INTEGER NOT NULL,
            lease_until INTEGER NOT NULL
        )
        """,
        "CREATE INDEX trueup_decision_about ON trueup_decision (about, number)",
        """
        CREATE TABLE trueup_acceptance (
            pair TEXT NOT NULL,
            key TEXT NOT NULL,
            authority_digest TEXT,
            replica_digest TEXT,
            fields TEXT NOT NULL,
            person TEXT NOT NULL,
            reason TEXT NOT NULL,
            until_us INTEGER NOT NULL,
            at_us INTEGER NOT NULL,
            about INTEGER NOT NULL,
            PRIMARY KEY (pair, key)
        ) WITHOUT ROWID
        """,
    ),
    Step(
        """
        CREATE TABLE trueup_schedule (
            pair TEXT NOT NULL,
            what TEXT NOT NULL,
            rule TEXT NOT NULL,
            due_us INTEGER NOT NULL,
            ready_us INTEGER NOT NULL,
            owner TEXT NOT NULL,
            fence INTEGER NOT NULL,
            started_us INTEGER,
            ended_us INTEGER,
            missed INTEGER NOT NULL,
            refused INTEGER NOT NULL,
            failures INTEGER NOT NULL,
            paused_by TEXT,
            reason TEXT NOT NULL,
            PRIMARY KEY (pair, what)
        ) WITHOUT ROWID
        """,
    ),
    Step(
        "ALTER TABLE trueup_piece ADD COLUMN from_us INTEGER",
        "ALTER TABLE trueup_piece ADD COLUMN to_us INTEGER",
        """
        CREATE TABLE trueup_seal (
            pair TEXT NOT NULL,
            from_us INTEGER NOT NULL,
            to_us INTEGER NOT NULL,
            authority_count INTEGER NOT NULL,
            authority_sum TEXT NOT NULL,
            replica_count INTEGER NOT NULL,
            replica_sum TEXT NOT NULL,
            asked TEXT NOT NULL,
            run INTEGER NOT NULL,
            sealed_us INTEGER NOT NULL,
            checked_us INTEGER NOT NULL,
            PRIMARY KEY (pair, from_us, to_us)
        ) WITHOUT ROWID
        """,
    ),
    Step(
        """
        CREATE TABLE trueup_evidence (
            number INTEGER PRIMARY KEY,
            kind TEXT NOT NULL,
            pair TEXT NOT NULL,
            about TEXT NOT NULL,
            at_us INTEGER NOT NULL,
            body TEXT NOT NULL,
            previous TEXT NOT NULL,
            digest TEXT NOT NULL,
            UNIQUE (kind, about)
        )
        """,
        "CREATE INDEX trueup_evidence_pair ON trueup_evidence (pair, number)",
        """
        CREATE TABLE trueup_chain (
            name TEXT PRIMARY KEY,
            number INTEGER NOT NULL,
            digest TEXT NOT NULL,
            runs_before INTEGER NOT NULL DEFAULT 0,
            decisions_before INTEGER NOT NULL DEFAULT 0
        ) WITHOUT ROWID
        """,
        # What ended before has no entry, and is not missed.
        f"""
        INSERT INTO trueup_chain SELECT 'evidence', 0, '{GENESIS}',
            (SELECT coalesce(max(number), 0) FROM trueup_run WHERE ended <> 'open'),
            (SELECT coalesce(max(number), 0) FROM trueup_decision)
        """,
    ),
    alerts.STEP,
    anchors.STEP,
    trends.STEP,
    tallies.STEP,
)
