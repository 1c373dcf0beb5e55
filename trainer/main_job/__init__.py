"""The main job: oracle episodes in every trade, then a small model learns two of them by SFT and GRPO."""

from .job import run_main_job
from .narrator import Narrator, Silent
from .plan import MainJob
from .report import Report, Stage

__all__ = ["MainJob", "Narrator", "Report", "Silent", "Stage", "run_main_job"]
