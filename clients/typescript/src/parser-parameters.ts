/** Parameters of the parsers: `csv` has all of them, `zip` for the CSV files in it, and `xlsx` has `header`. */
export interface ParserParameters {
  /** One character between values, a space for runs of spaces; found unless given. */
  delimiter?: string | undefined;
  /** Whether the first line names the columns; found unless given. */
  header?: boolean | undefined;
  /** The character around values that contain delimiters or line breaks. */
  quote?: string | undefined;
  /** Unless given that of the byte order mark, or UTF-8. */
  encoding?: 'utf-8' | 'utf-16' | 'latin-1' | 'windows-1252' | undefined;
  /** The character before the fraction of a number. */
  decimal?: '.' | ',' | undefined;
  /** The character that lines which are left out begin with. */
  comment?: string | undefined;
  /** Lines at the beginning that are left out. */
  skip?: number | undefined;
  /** Whether the second row names units. */
  units?: boolean | undefined;
  /** The texts that mean a missing value. */
  nulls?: string[] | undefined;
  /** At most so many malformed rows are left out and listed. */
  tolerance?: number | undefined;
  /** Reads every column as text. */
  text?: boolean | undefined;
  /** The types of columns, by name. */
  types?:
    | Record<string, 'text' | 'integer' | 'number' | 'boolean' | 'date' | 'time' | 'timestamp'>
    | undefined;
}
