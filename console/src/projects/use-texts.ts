import type { TargetedInputEvent } from 'preact';
import { useDraft } from '../service/drafts.ts';
import type { FormChange } from '../service/seen-changes.ts';

/** A form's texts of a record. */
export interface Form<Texts> {
  /** What the field needs that a text is typed into. */
  field: (name: keyof Texts & string) => {
    name: string;
    value: string;
    onInput: (event: TargetedInputEvent<HTMLInputElement | HTMLTextAreaElement>) => void;
  };
  isTyped: boolean;
  /** Against the texts that were stored when typing began. */
  change: FormChange<Texts>;
  drop: () => void;
}

export function useTexts<Texts extends Record<keyof Texts, string>>(
  of: string,
  stored: Texts,
): Form<Texts> {
  const { draft, change, drop } = useDraft(of, { before: stored, texts: stored }, isSame);
  const { before, texts } = draft;
  const after: Partial<Texts> = {};
  for (const name of Object.keys(texts) as (keyof Texts)[])
    if (texts[name] !== before[name]) after[name] = texts[name].trim() as Texts[keyof Texts];
  return {
    field: name => ({
      name,
      value: texts[name],
      onInput: ({ currentTarget: { value } }) =>
        change({ before, texts: { ...texts, [name]: value } }),
    }),
    isTyped: texts !== stored,
    change: { before, after },
    drop,
  };
}

const isSame = (one: { texts: object }, other: { texts: object }): boolean =>
  JSON.stringify(one.texts) === JSON.stringify(other.texts);
