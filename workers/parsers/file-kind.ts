const HDF5 = '\x89HDF\r\n\x1a\n';
/** HDF5 may begin after a user block, as in files of MATLAB 7.3, of this size times a power of two. */
const USER_BLOCK = 512;
/** The first bytes of binary files; longer marks precede their own prefixes. */
const MARKS: [mark: string, name: string, parser?: string][] = [
  [HDF5, 'an HDF5 file', 'hdf5'],
  ['CDF\x01', 'a netCDF-3 file'],
  ['CDF\x02', 'a netCDF-3 file'],
  ['CDF\x05', 'a netCDF-3 file'],
  ['\x93NUMPY', 'a NumPy file', 'npy'],
  ['PAR1', 'a Parquet file', 'parquet'],
  ['PARE', 'an encrypted Parquet file'],
  ['PK\x03\x04', 'a ZIP archive', 'zip'],
  ['PK\x05\x06', 'an empty ZIP archive', 'zip'],
  ['\x1f\x8b', 'a gzip file'],
  ['\x28\xb5\x2f\xfd', 'a zstd file'],
  ['\xfd7zXZ\0', 'an xz file'],
  ['7z\xbc\xaf\x27\x1c', 'a 7-Zip archive'],
  ['BZh', 'a bzip2 file'],
  ['\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1', 'an XLS workbook of Excel 97, or an encrypted one'],
  ['\x89PNG\r\n\x1a\n', 'a PNG image'],
  ['\xff\xd8\xff', 'a JPEG image'],
  ['GIF8', 'a GIF image'],
  ['II*\0', 'a TIFF image'],
  ['MM\0*', 'a TIFF image'],
  ['v/1\x01', 'an OpenEXR image'],
  ['%PDF-', 'a PDF document'],
  ['SIMPLE  =', 'a FITS file'],
  ['MATLAB 5.0 MAT-file', 'a MATLAB file'],
  ['SQLite format 3\0', 'an SQLite database'],
];
/** A text's first line may begin so; in the binary files, bytes that no text has follow soon. */
const MAY_BE_TEXT = /^[A-Z\d]{3,4}$/i;
/** The first member of a workbook's ZIP archive, as Excel, LibreOffice and others write it. */
const WORKBOOK_MEMBERS = ['[Content_Types].xml', '_rels/', 'docProps/', 'xl/'];
/** Where the name of the first member begins. */
const MEMBER_NAME = 30;

export interface FileKind {
  /** The name with its article. */
  name: string;
  /** The parser that reads such files. */
  parser?: string;
}

/** The kind of a file by its first bytes; undefined if they may be text. */
export function recognizeFile(head: Buffer): FileKind | undefined {
  const text = head.subarray(0, 64).toString('latin1');
  for (let at = USER_BLOCK; at < head.length; at *= 2)
    if (head.toString('latin1', at, at + HDF5.length) === HDF5)
      return { name: 'an HDF5 file', parser: 'hdf5' };
  const isWorkbook = WORKBOOK_MEMBERS.some(member => text.startsWith(member, MEMBER_NAME));
  if (text.startsWith('PK') && isWorkbook) return { name: 'an XLSX workbook', parser: 'xlsx' };
  const found = MARKS.find(([mark]) => text.startsWith(mark));
  if (!found || (MAY_BE_TEXT.test(found[0]) && !hasControls(head))) return undefined;
  return { name: found[1], parser: found[2] };
}

/** Whether there are control characters other than tabs and line ends. */
const hasControls = (head: Buffer) =>
  head.some(byte => byte < 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d);
