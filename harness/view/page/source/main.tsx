// The page: which view an address names, and what all views share.
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { BesidePage } from "./beside";
import { BoardPage } from "./board";
import { ComparePage } from "./compare";
import { getRuns, live, start, type Runs } from "./data";
import { EpisodePage } from "./episode";
import { Home } from "./home";
import { Help } from "./help";
import { useKeys } from "./keys";
import { Wrong } from "./loading";
import { clear, useMarks } from "./marks";
import { go, link, useRoute, type Route } from "./route";
import { RunPage } from "./run";

const pollMs = 3000;

/** The runs; asked for again as long as somebody looks, since a run may still be written. */
function useRuns(): { runs?: Runs; error?: string } {
  const [state, set] = useState<{ runs?: Runs; error?: string }>({});
  useEffect(() => {
    let timer = 0;
    let said = "";
    const ask = async () => {
      try {
        if (!document.hidden || !said) {
          const runs = await getRuns();
          const now = JSON.stringify(runs);
          if (now !== said) set({ runs });
          else set((before) => (before.error && before.runs ? { runs: before.runs } : before));
          said = now;
        }
      } catch (error) {
        set((before) => ({ ...before, error: (error as Error).message }));
      }
      if (live) timer = setTimeout(ask, pollMs);
    };
    void ask();
    return () => clearTimeout(timer);
  }, []);
  return state;
}

type Theme = "" | "light" | "dark";
const stored = (): Theme => {
  try {
    const theme = localStorage.getItem("metier-theme");
    return theme === "light" || theme === "dark" ? theme : "";
  } catch {
    return "";
  }
};

function useTheme(): [Theme, () => void] {
  const [theme, set] = useState(stored);
  useEffect(() => {
    if (theme) document.documentElement.dataset["theme"] = theme;
    else delete document.documentElement.dataset["theme"];
    try {
      localStorage.setItem("metier-theme", theme);
    } catch {
      // a page that may store nothing still has its theme while it is open
    }
  }, [theme]);
  const isDark = theme === "dark" || (theme === "" && matchMedia("(prefers-color-scheme: dark)").matches);
  return [theme, () => set(isDark ? "light" : "dark")];
}

function App() {
  const route = useRoute();
  const view = route.parts[0] ?? start;
  const onBoard = view === "leaderboard";
  const { runs, error } = useRuns();
  const [, turn] = useTheme();
  const [help, setHelp] = useState(false);
  useKeys([
    { keys: ["?"], what: "these keys", does: () => setHelp(true) },
    { keys: ["t"], what: "dark or light", does: turn },
    { keys: ["h"], what: "all runs", does: () => go("#/runs") },
    { keys: ["c"], what: "compare the two that are marked", does: () => compareMarked() },
  ]);
  useEffect(() => {
    document.title = [...route.parts.slice(1, 2), "Metier"].join(" · ");
  }, [route]);
  return (
    <>
      <header class="bar-top">
        <a class="home" href="#/">
          Metier
        </a>
        {runs?.leaderboard ? (
          <nav aria-label="Pages">
            <a href="#/leaderboard" aria-current={onBoard ? "page" : undefined}>
              Leaderboard
            </a>
            <a href="#/runs" aria-current={onBoard ? undefined : "page"}>
              Runs
            </a>
          </nav>
        ) : null}
        <span class="spring" />
        {error && runs ? (
          <span class="chip bad" role="status">
            {error}
          </span>
        ) : null}
        <button class="quiet" onClick={turn} title="Dark or light (t)" aria-label="Dark or light">
          ◐
        </button>
        <button class="quiet" onClick={() => setHelp(true)} title="Keys (?)" aria-label="Keys">
          ?
        </button>
      </header>
      {onBoard ? <BoardPage query={route.query} runs={runs} /> : runs ? <View route={route} runs={runs} /> : error ? <main><Wrong>{error}</Wrong></main> : <main><p class="loading" role="status">reading the runs…</p></main>}
      <MarkedBar />
      {help ? <Help onClose={() => setHelp(false)} /> : null}
    </>
  );
}

function View({ route, runs }: { route: Route; runs: Runs }) {
  const [view, one = "", two = "", three = "", four = ""] = route.parts;
  const named = (name: string) => runs.runs.find((run) => run.name === name && !run.problem);
  const first = named(one);
  if (view === undefined || view === "runs") return <Home runs={runs} />;
  if (view === "run" && first) return <RunPage key={one} run={first} query={route.query} />;
  if (view === "episode" && first) return <EpisodePage run={first} id={two} query={route.query} />;
  const second = named(view === "compare" ? two : three);
  if (view === "compare" && first && second) return <ComparePage first={first} second={second} query={route.query} />;
  if (view === "beside" && first && second) return <BesidePage first={{ run: one, id: two }} second={{ run: three, id: four }} />;
  const problem = runs.runs.find((run) => run.name === one)?.problem;
  return (
    <main>
      <Wrong>{problem ? `${one}: ${problem}` : one ? `There is no ${view} ${one} here.` : "There is no such page."}</Wrong>
      <p>
        <a href="#/runs">All runs</a>
      </p>
    </main>
  );
}

let compareMarked: () => void = () => undefined;

function MarkedBar() {
  const marks = useMarks();
  const [one, two] = marks;
  const hash = one && two ? (one.id ? link(["beside", one.run, one.id, two.run, two.id]) : link(["compare", one.run, two.run])) : "";
  compareMarked = () => {
    if (hash) go(hash);
  };
  if (!one) return null;
  return (
    <aside class="marked" aria-label="Marked to compare">
      <span class="labels">
        {marks.map((mark) => (
          <span class="chip">{mark.label}</span>
        ))}
        {two ? null : <small>mark another one (x) to compare</small>}
      </span>
      {hash ? (
        <a class="button" href={hash}>
          Compare (c)
        </a>
      ) : null}
      <button class="quiet" onClick={clear}>
        Clear
      </button>
    </aside>
  );
}

const root = document.getElementById("page");
if (root) {
  root.replaceChildren();
  render(<App />, root);
}
