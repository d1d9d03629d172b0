"""A program for torchrun whose second process dies in an epoch of its first life, given on the command line."""

import os
import signal
import sys

import torch

from bigcn.distributed import run_process, train_shards
from bigcn.training import TrainConfig

shards, model, out, epoch = sys.argv[1:]


def work(processes):
    def die(progress):
        first_life = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        if progress.epoch == int(epoch) and processes.rank == 1 and first_life:
            os.kill(os.getpid(), signal.SIGKILL)

    torch.set_num_threads(1)
    config = TrainConfig(max_epochs=12, curves=True)
    return train_shards(
        shards, processes, config=config, save=model, checkpoint_every=4, on_epoch=die, dtype=torch.float64
    )


run = run_process(work)
if os.environ["RANK"] == "0":
    torch.save({"result": run.result, "state": run.model.state_dict(), "resumed": run.resumed}, out)
