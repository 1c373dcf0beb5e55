// The keys that can be pressed now.
import { useState } from "preact/hooks";
import { Dialog } from "./dialog";
import { allKeys } from "./keys";

const shown: Record<string, string> = { ArrowDown: "↓", ArrowUp: "↑", Escape: "Esc", ArrowLeft: "←", ArrowRight: "→" };

export function Help({ onClose }: { onClose: () => void }) {
  const [all] = useState(() => allKeys());
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
