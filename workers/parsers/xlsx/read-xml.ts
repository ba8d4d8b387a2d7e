import { type SaxesAttributeNS, SaxesParser, type SaxesTagNS } from 'saxes';
import { MAX_RECORD_BYTES } from '../csv/dialect.ts';
import { TableError } from '../table/protocol.ts';

export interface XmlTag {
  /** The name without its prefix. */
  name: string;
  /** The attributes by name without prefix, but `r:id` is `r:id` in any spelling. */
  attributes: Record<string, string>;
}

interface Handlers {
  onOpen?(tag: XmlTag): void;
  onText?(text: string): void;
  onClose?(name: string): void;
}

const MAX_DEPTH = 64;
/** Limit of characters between two tags. */
const MAX_GAP = 2 * MAX_RECORD_BYTES;
const RELATIONSHIPS = /\/relationships$/;

/**
 * Reads XML incrementally; yields after each piece, so that the handlers' findings can be taken. Only XML's own
 * entities are allowed, and a document type is an error.
 */
export async function* readXml(
  bytes: AsyncIterable<Buffer>,
  { part, onOpen, onText, onClose }: Handlers & { part: string },
): AsyncGenerator<void> {
  const parser = new SaxesParser({ xmlns: true, position: false });
  const refuse = (why: string): never => {
    throw new TableError({
      reason: `${part} in the workbook is damaged: ${why.slice(0, 200)}`,
      hint: 'Save the workbook again, and send it again.',
    });
  };
  let depth = 0;
  let gap = 0;
  parser.on('error', error => refuse(error.message));
  parser.on('doctype', () => refuse('it has a document type'));
  parser.on('opentag', (tag: SaxesTagNS) => {
    gap = 0;
    if (++depth > MAX_DEPTH) refuse('it is nested too deeply');
    onOpen?.({ name: tag.local, attributes: plain(tag.attributes) });
  });
  parser.on('closetag', (tag: SaxesTagNS) => {
    gap = 0;
    depth--;
    onClose?.(tag.local);
  });
  parser.on('text', text => onText?.(text));
  parser.on('cdata', text => onText?.(text));
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decode = (piece?: Buffer) => {
    try {
      return decoder.decode(piece, { stream: piece !== undefined });
    } catch {
      return refuse('it is not UTF-8');
    }
  };
  for await (const piece of bytes) {
    gap += piece.length;
    parser.write(decode(piece));
    if (gap > MAX_GAP) refuse(`a text is longer than ${MAX_GAP} bytes`);
    yield;
  }
  parser.write(decode());
  parser.close();
  yield;
}

function plain(attributes: Record<string, SaxesAttributeNS>): Record<string, string> {
  const found: Record<string, string> = {};
  for (const { local, prefix, uri, value } of Object.values(attributes))
    if (prefix !== 'xmlns' && local !== 'xmlns')
      found[RELATIONSHIPS.test(uri) ? `r:${local}` : local] = value;
  return found;
}

/** Reads a part to its end. */
export async function readWholeXml(
  bytes: AsyncIterable<Buffer>,
  handlers: Handlers & { part: string },
): Promise<void> {
  for await (const _ of readXml(bytes, handlers));
}

/** Characters that XML does not have are written as _xHHHH_ in workbooks. */
export const unescapeText = (text: string): string =>
  text.includes('_x')
    ? text.replace(/_x([0-9A-Fa-f]{4})_/g, (_all, code: string) =>
        String.fromCharCode(Number.parseInt(code, 16)),
      )
    : text;
