"""The predictions of all processes in one table, in the order of the node table."""

import csv
import io

import numpy as np
import torch

from bigcn.distributed.processes import Processes
from bigcn.distributed.running import ShardedPredictions
from bigcn.distributed.shards import Manifest, Shard
from bigcn.files import PathLike, write_text


def write_predictions(
    path: PathLike, predictions: ShardedPredictions, folder: PathLike, processes: Processes, temperature: float = 1.0
) -> None:
    """Writes the id, the class and its probability for each node; the first process does.

    It gathers 24 bytes for each node, and reads the ids from the shards.

    Args:
        path (str or path): The table, CSV.
        predictions (ShardedPredictions): The predictions of this process.
        folder (str or path): The folder of shards.
        processes (Processes): The processes.
        temperature (float, optional): What outputs are divided by before they become probabilities.
            (default: :obj:`1.0`)
    """
    share, chosen = (predictions.outputs.double() / temperature).softmax(dim=-1).max(dim=-1)
    rows = torch.as_tensor(predictions.rows.copy(), device=share.device).double()
    gathered = processes.gather_rows(torch.stack([rows, chosen.double(), share], dim=1))

    def write() -> None:
        if gathered is None:
            return
        table = torch.cat(gathered).cpu().numpy()
        table = table[np.argsort(table[:, 0])]
        manifest = Manifest.load(folder)
        ids = np.empty(manifest.nodes, dtype=object)
        for part in range(manifest.parts):
            shard = Shard(folder, part, manifest)
            ids[np.asarray(shard.array("rows"))] = shard.ids()
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["id", "label", "probability"])
        for id, (_, number, probability) in zip(ids, table, strict=True):
            writer.writerow([id, predictions.classes[int(number)], f"{probability:.6f}"])
        write_text(path, text.getvalue())

    processes.together(write)
