/** Where the fault is not that of the command on the host, as ssh's. */
export const OUR_FAULT = 255;

/** A backup lacks objects, as it was told that it may. */
export const WITHOUT_ALL = 3;

/** Commands whose exit status is otherwise that of work on a host. */
const AS_THEIR_WORK = ['run', 'batch', 'logs', 'wait'];

/** The exit status of a command that cannot do its work. */
export const failureStatus = (name: string | undefined): number =>
  name !== undefined && AS_THEIR_WORK.includes(name) ? OUR_FAULT : 1;
