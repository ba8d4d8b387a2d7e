const UNITS = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];

export function formatBytes(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
  const digits = power === 0 || bytes >= 100 * 2 ** (10 * power) ? 0 : 1;
  return `${(bytes / 2 ** (10 * power)).toFixed(digits)} ${UNITS[power]}`;
}
