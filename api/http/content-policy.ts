/** A Content-Security-Policy of these directives: whatever else it allows, no page shows the answer in a frame. */
export const contentPolicy = (...directives: string[]) =>
  [...directives, "frame-ancestors 'none'"].join('; ');
