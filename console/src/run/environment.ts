/** Variables as they are typed, a line for each; a line that is none is an error that names it. */
export function readEnvironment(text: string): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const [n, given] of text.split('\n').entries()) {
    const line = given.replace(/\r$/, '');
    if (line.trim() === '') continue;
    const equals = line.indexOf('=');
    const name = line.slice(0, equals).trim();
    if (equals < 0) throw new Error(`Line ${n + 1} of the environment has no "=": ${line}`);
    if (!/^[A-Za-z_]\w*$/.test(name))
      throw new Error(`Line ${n + 1} of the environment has no name of a variable: ${line}`);
    if (Object.hasOwn(variables, name))
      throw new Error(`Line ${n + 1} of the environment gives ${name} once more.`);
    variables[name] = line.slice(equals + 1);
  }
  return variables;
}
