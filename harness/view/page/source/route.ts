// Where the page is: the hash of its address, so that every view is a link that works from any file or server.
import { useEffect, useState } from "preact/hooks";

export interface Route {
  parts: string[];
  query: Record<string, string>;
}

export function read(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const decoded = (text: string) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  };
  const query: Record<string, string> = Object.create(null);
  for (const [name, value] of new URLSearchParams(search)) query[name] = value;
  return { parts: path.split("/").filter(Boolean).map(decoded), query };
}

export function link(parts: string[], query: Record<string, string> = {}): string {
  const set = Object.entries(query).filter(([, value]) => value !== "");
  const search = set.length ? `?${new URLSearchParams(set)}` : "";
  return `#/${parts.map(encodeURIComponent).join("/")}${search}`;
}

export const go = (hash: string) => {
  location.hash = hash;
};

/** Another address of the same view: no new step of the browser's history. */
export function become(hash: string): void {
  if (hash === location.hash) return;
  history.replaceState(null, "", hash);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const [route, set] = useState(() => read(location.hash));
  useEffect(() => {
    const changed = () => set(read(location.hash));
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
