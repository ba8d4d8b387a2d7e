import type { TargetedSubmitEvent } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Challenge } from '../service/hosts.ts';
import { Button } from '../ui/button.tsx';
import { useNow } from '../ui/time.tsx';

interface ChallengeFormProps {
  challenge: Challenge;
  onAnswer: (answers: string[]) => void;
  onCancel: () => void;
}

/** What a host asks at a login, in its own words, and how long it waits. */
export function ChallengeForm({ challenge, onAnswer, onCancel }: ChallengeFormProps) {
  const { instruction, prompts, expires } = challenge;
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector('input')?.focus(), []);
  const seconds = Math.max(0, Math.ceil((Date.parse(expires) - useNow(1_000)) / 1_000));
  const send = (event: TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const fields = new FormData(event.currentTarget);
    onAnswer(prompts.map((_prompt, i) => String(fields.get(`answer-${i}`) ?? '')));
  };
  return (
    <form class="form" ref={form} onSubmit={send}>
      {instruction && <p class="instruction">{instruction}</p>}
      {prompts.map(({ text, echo }, i) => (
        <label class="field" key={i}>
          <span>{text}</span>
          <input
            class="input"
            name={`answer-${i}`}
            type={echo ? 'text' : 'password'}
            autocomplete="one-time-code"
          />
        </label>
      ))}
      <p class="muted">The host waits {seconds} s more.</p>
      <div class="dialog-end">
        <Button onClick={onCancel}>Cancel</Button>
        <Button type="submit" look="primary">
          Answer
        </Button>
      </div>
    </form>
  );
}
