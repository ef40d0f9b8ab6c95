"""Answers from the selected memories, and verdicts on them, through an OpenAI-compatible endpoint.

The stages store → pool → selection → answer → verdict are separate; replies are kept on disk by
content, so that whatever did not change is neither asked nor paid again.
"""
