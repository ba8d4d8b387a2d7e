export function escapeHtml(text: unknown): string {
  return String(text).replace(/[&<>"']/g, character => `&#${character.charCodeAt(0)};`);
}

/** Text in which code stands between backquotes. */
export const drawText = (text: unknown) =>
  escapeHtml(text).replace(/`([^`]*)`/g, '<code>$1</code>');
