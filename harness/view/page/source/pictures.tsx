// A picture as large as the window, alone or beside an earlier one.
import { useState } from "preact/hooks";
import type { Shown } from "./data";
import { Dialog } from "./dialog";
import { useKeys } from "./keys";

export function Gallery({ pictures, first, address, onClose }: { pictures: Shown[]; first: number; address: (one: Shown) => string; onClose: () => void }) {
  const [at, setAt] = useState(Math.max(0, pictures.findIndex((one) => one.number === first)));
  const [two, setTwo] = useState(false);
  const move = (by: number) => () => setAt((now) => Math.max(0, Math.min(pictures.length - 1, now + by)));
  useKeys([
    { keys: ["j", "ArrowRight", "ArrowDown"], what: "next picture", does: move(1) },
    { keys: ["k", "ArrowLeft", "ArrowUp"], what: "picture before", does: move(-1) },
    { keys: ["b"], what: "beside the picture before it", does: () => setTwo(!two) },
  ]);
  const here = pictures[at];
  const before = two ? pictures[at - 1] : undefined;
  if (!here) return null;
  const one = (shown: Shown) => (
    <figure>
      <img src={address(shown)} alt={`Picture ${shown.number + 1}`} />
      <figcaption>
        picture {shown.number + 1} of the episode, {shown.width} × {shown.height}
      </figcaption>
    </figure>
  );
  return (
    <Dialog label="Pictures" wide onClose={onClose}>
      <div class={before ? "gallery two" : "gallery"}>
        {before ? one(before) : null}
        {one(here)}
      </div>
      {pictures.length > 1 ? (
        <p class="turns-of">
          <button onClick={move(-1)} disabled={at === 0}>
            ← before
          </button>
          <span>
            {at + 1} of {pictures.length}
          </span>
          <button onClick={move(1)} disabled={at === pictures.length - 1}>
            next →
          </button>
          <button aria-pressed={two} disabled={at === 0} onClick={() => setTwo(!two)}>
            beside the one before
          </button>
        </p>
      ) : null}
    </Dialog>
  );
}
