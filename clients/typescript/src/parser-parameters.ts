/** Parameters of the parsers: `csv` has all of them, `zip` for the CSV files in it, and `xlsx` has `header`. */
export interface ParserParameters {
  /** One character between values, a space for runs of spaces; found unless given. */
  delimiter?: string;
  /** Whether the first line names the columns; found unless given. */
  header?: boolean;
  /** The character around values that contain delimiters or line breaks. */
  quote?: string;
  /** Unless given that of the byte order mark, or UTF-8. */
  encoding?: 'utf-8' | 'utf-16' | 'latin-1' | 'windows-1252';
  /** The character before the fraction of a number. */
  decimal?: '.' | ',';
  /** The character that lines which are left out begin with. */
  comment?: string;
  /** Lines at the beginning that are left out. */
  skip?: number;
  /** Whether the second row names units. */
  units?: boolean;
  /** The texts that mean a missing value. */
  nulls?: string[];
  /** At most so many malformed rows are left out and listed. */
  tolerance?: number;
  /** Reads every column as text. */
  text?: boolean;
  /** The types of columns, by name. */
  types?: Record<string, 'text' | 'integer' | 'number' | 'boolean' | 'date' | 'time' | 'timestamp'>;
}
