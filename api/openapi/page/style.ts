export const STYLE = `
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --accent: #2563a8; }
@media (prefers-color-scheme: dark) { :root { --accent: #7db7f0; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1rem; }
a { color: var(--accent); }
h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
h4 { margin: .8rem 0 .2rem; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .4rem 0; padding: .3rem .8rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
code, pre { font: 14px/1.45 ui-monospace, monospace; }
code { overflow-wrap: anywhere; }
pre { background: var(--soft); padding: .6rem .8rem; border-radius: .4rem; overflow-x: auto; }
[id] { scroll-margin-top: 4rem; }
input, textarea, button { font: inherit; box-sizing: border-box; max-width: 100%; }
textarea { width: 100%; font: 14px/1.45 ui-monospace, monospace; }
.try label { display: inline-block; margin: 0 .8rem .3rem 0; }
.method { display: inline-block; min-width: 4.2rem; font-weight: 600; color: var(--accent); }
.deprecated { text-decoration: line-through; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; }
tr:target { background: var(--soft); }
td { border-top: 1px solid var(--line); padding: .2rem .8rem .2rem 0; vertical-align: top; overflow-wrap: anywhere; }
.answers { table-layout: fixed; }
.answers td:first-child { width: 3rem; }
@media (max-width: 40rem) {
  th { display: none; }
  table, tbody, tr, td, .answers td:first-child { display: block; width: auto; }
  td { border: 0; padding: 0; }
  tr { border-top: 1px solid var(--line); padding: .4rem 0; }
}
`;
