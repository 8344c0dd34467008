"""The only callers of Google: objects (`storage`), training jobs (`vertex`) and their log lines (`logs`).

All three take their endpoint from the settings and raise the `ServiceError` family of `trainops.errors`.
"""
