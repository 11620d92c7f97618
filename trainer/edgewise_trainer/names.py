"""Names of the functions that the trainer knows, and of what they take and give."""

from __future__ import annotations

INFER, PREPARE = "infer", "prepare"
TRAIN_STEP, EVALUATE = "train_step", "evaluate"
# Beside the inputs of the model, a step takes these and gives the loss.
LOSS, TARGET, RATE, STEP = "loss", "target", "learning_rate", "step"
AVERAGE = "average"  # the slot of a running average of a parameter
# A step in two halves: gradients of parts of a batch add up, and are spent.
ACCUMULATE, APPLY, WEIGHT = "accumulate", "apply", "weight"
