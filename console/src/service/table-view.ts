/** The order of the rows, and the filters that they all pass, as the service takes them. */
export interface View {
  /** Names of columns, `-` before those that descend. */
  sort: string[];
  /** `column:op:value` each. */
  filter: string[];
}
