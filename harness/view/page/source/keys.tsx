// One list of keys for the whole page: what a view can do by key it registers while it is there, and `?` shows it.
import { useEffect, useState } from "preact/hooks";
import { Dialog } from "./dialog";

export interface Key {
  keys: string[];
  what: string;
  /** False where the key shall do what the browser does with it. */
  does: () => boolean | void;
}

const layers: Key[][] = [];

/** The newest layer that knows a key has it. */
export function useKeys(keys: Key[]): void {
  useEffect(() => {
    layers.unshift(keys);
    return () => {
      const at = layers.indexOf(keys);
      if (at >= 0) layers.splice(at, 1);
    };
  });
}

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName));

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  const onControl = event.target instanceof HTMLElement && event.target.closest("a,button,summary,[role=button]");
  if (onControl && (event.key === "Enter" || event.key === " ")) return;
  for (const layer of layers)
    for (const one of layer)
      if (one.keys.includes(event.key)) {
        if (one.does() === false) return;
        event.preventDefault();
        // else Enter would go to whatever was clicked last, and not to what the keys have chosen since
        if (onControl) (event.target as HTMLElement).blur();
        return;
      }
});

const shown: Record<string, string> = { ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc", ArrowLeft: "←", ArrowRight: "→" };

export function Help({ onClose }: { onClose: () => void }) {
  const [all] = useState(() => layers.flat());
  return (
    <Dialog label="Keys" onClose={onClose}>
      <h2>Keys</h2>
      <dl class="keys">
        {all.map((one) => (
          <div>
            <dt>
              {one.keys.map((key) => (
                <kbd>{shown[key] ?? key}</kbd>
              ))}
            </dt>
            <dd>{one.what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
