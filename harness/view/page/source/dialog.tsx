// A window over the page; the browser's own dialog keeps the focus in it, and gives it back.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useKeys } from "./keys";

export function Dialog({ label, wide, onClose, children }: { label: string; wide?: boolean; onClose: () => void; children: ComponentChildren }) {
  useKeys([{ keys: ["Escape"], what: "close", does: onClose }], true);
  const at = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = at.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={at}
      class={wide ? "wide" : ""}
      aria-label={label}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      onClick={(event) => event.target === at.current && onClose()}
    >
      {children}
      <button class="close" onClick={onClose} aria-label="Close" title="Close (Esc)">
        ×
      </button>
    </dialog>
  );
}
