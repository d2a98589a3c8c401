"""HTTP APIs that speak JSON, as sides."""

from trueup.sides.http.auth import Basic, Bearer, OAuth2ClientCredentials
from trueup.sides.http.side import Http

__all__ = ["Basic", "Bearer", "Http", "OAuth2ClientCredentials"]
