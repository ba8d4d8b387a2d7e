/** Pixels of a line, and of a character of the widest usual monospace font. */
const LINE = 19;
const CHARACTER = 8.1;
const MARGIN = 18;

const escapeXml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** An SVG of a terminal that shows these lines; those of `commands` were typed. */
export function drawTerminal(
  lines: string[],
  { commands, title }: { commands: Set<string>; title: string },
): string {
  const width = Math.ceil(2 * MARGIN + CHARACTER * Math.max(...lines.map(line => line.length + 2)));
  const height = 2 * MARGIN + LINE * lines.length;
  const drawn = lines.map((line, n) => {
    const at = `x="${MARGIN}" y="${MARGIN + 14 + n * LINE}"`;
    const typed = commands.has(line);
    return `  <text ${at}${typed ? ' class="typed"' : ''} xml:space="preserve">${escapeXml(typed ? `$ ${line}` : line)}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-labelledby="title">
  <title id="title">${escapeXml(title)}</title>
  <style>
    text { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #c6d0da }
    .typed { fill: #f0f4f8; font-weight: 600 }
    .screen { fill: #10161d; stroke: #5d6f80 }
  </style>
  <rect class="screen" x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8"/>
${drawn.join('\n')}
</svg>
`;
}
