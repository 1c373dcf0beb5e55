// Builds ../static from source/: `node build.mjs [FOLDER]`. The same sources give the same bytes.
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const out = process.argv[2] ?? "../static";
mkdirSync(out, { recursive: true });
await build({
  entryPoints: { page: "source/main.tsx" },
  outdir: out,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  logLevel: "warning",
});
await build({ entryPoints: ["source/page.css"], outdir: out, minify: true, logLevel: "warning" });
cpSync("source/index.html", `${out}/index.html`);
const version = JSON.parse(readFileSync("node_modules/preact/package.json")).version;
const licence = readFileSync("node_modules/preact/LICENSE", "utf8");
writeFileSync(`${out}/licences.txt`, `page.js holds Preact ${version} (preactjs.com):\n\n${licence}`);
