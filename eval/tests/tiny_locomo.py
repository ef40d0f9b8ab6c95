"""A tiny file in LoCoMo's format, with every slip the official one has."""

from __future__ import annotations

import copy
from typing import Any

TINY: list[dict[str, Any]] = [
    {
        "sample_id": "tiny",
        "conversation": {
            "speaker_a": "Ada",
            "speaker_b": "Ben",
            "session_1_date_time": "1:56 pm on 8 May, 2023",
            "session_1": [
                {"speaker": "Ada", "dia_id": "D1:1", "text": "I adopted a cat called Miso."},
                {
                    "speaker": "Ben",
                    "dia_id": "D1:2",
                    "text": "Lovely! My garden is in bloom.",
                    "blip_caption": "a photo of red tulips",
                    "img_url": ["http://example.invalid/tulips.jpg"],
                },
            ],
            "session_2_date_time": "12:09 am on 1 June, 2023",
            "session_2": [
                {"speaker": "Ada", "dia_id": "D2:1", "text": "Miso broke a vase."},
                {"speaker": "Ben", "dia_id": "D2:2", "text": "I planted roses in the garden."},
            ],
            "session_3_date_time": "9:00 am on 2 July, 2023",
            "session_3": [
                {"speaker": "Ada", "dia_id": "D3:1", "text": "I moved to Porto for a new job."},
            ],
            "session_4_date_time": "9:00 am on 3 July, 2023",
        },
        "observation": {
            "session_1_observation": {
                "Ada": [["Ada adopted a cat called Miso.", "D1:1"]],
                "Ben": [["Ben's garden is in bloom with tulips.", ["D1:2"]]],
            },
            "session_2_observation": {
                "Ada": [["Ada's cat Miso broke a vase.", "D2:1, D2:2"]],
                "Ben": [["Ben planted roses in his garden.", ["D2:2"]]],
            },
            "session_3_observation": {"Ada": [["Ada moved to Porto for work.", "D3:1"]]},
        },
        "qa": [
            {"question": "What did the cat break?", "answer": "A vase", "evidence": ["D2:1"],
             "category": 4},
            {"question": "What grows in Ben's garden?", "answer": "tulips and roses",
             "evidence": ["D1:2; D2:2"], "category": 1},
            {"question": "When did Ada move?", "answer": 2023, "evidence": ["D:3:1", "D"],
             "category": 2},
            {"question": "Would Ada like dogs?", "answer": "Unknown; she has a cat",
             "evidence": [], "category": 3},
            {"question": "Who broke the vase and where is it?", "answer": "Miso",
             "evidence": ["D2:01 D1:1", "D2:19"], "category": 1},
            {"question": "What is Ada's dog called?", "adversarial_answer": "Miso",
             "evidence": ["D1:1"], "category": 5},
        ],
    }
]  # fmt: skip


def tiny() -> list[dict[str, Any]]:
    """Return a fresh copy to change."""
    return copy.deepcopy(TINY)
