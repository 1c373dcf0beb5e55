// One list of keys for the whole page: what a view can do by key it registers while it is there, and `?` shows it.
import { useLayoutEffect, useRef } from "preact/hooks";

export interface Key {
  keys: string[];
  what: string;
  /** False where the key shall do what the browser does with it. */
  does: () => boolean | void;
}

interface Layer {
  keys: { current: Key[] };
  /** Whether what lies below hears nothing meanwhile. */
  modal: boolean;
}

const layers: Layer[] = [];

/** What came last is asked first; a layer keeps its place however often its view is drawn. */
export function useKeys(keys: Key[], modal = false): void {
  const current = useRef(keys);
  current.current = keys;
  // at once: the next key may come before the browser has drawn
  useLayoutEffect(() => {
    const layer = { keys: current, modal };
    layers.unshift(layer);
    return () => void layers.splice(layers.indexOf(layer), 1);
  }, []);
}

export const allKeys = (): Key[] => layers.flatMap((layer) => layer.keys.current);

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && target.matches("input:not([type=checkbox]), select, textarea, [contenteditable]");

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing(event.target)) {
    if (event.key === "Escape") (event.target as HTMLElement).blur();
    return;
  }
  const onControl = event.target instanceof HTMLElement && event.target.closest("a,button,input,summary");
  if (onControl && (event.key === "Enter" || event.key === " ")) return;
  for (const layer of layers) {
    for (const one of layer.keys.current)
      if (one.keys.includes(event.key)) {
        if (one.does() === false) return;
        event.preventDefault();
        // else Enter would go to whatever was clicked last, and not to what the keys have chosen since
        if (onControl) (event.target as HTMLElement).blur();
        return;
      }
    if (layer.modal) return;
  }
});
