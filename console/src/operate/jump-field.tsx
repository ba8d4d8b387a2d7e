import { useHosts } from '../service/hosts.ts';
import { itemsOf } from '../service/pages.ts';
import { Choice } from '../ui/choice.tsx';

interface JumpFieldProps {
  /** The host itself, which leads to itself least of all. */
  host?: string;
  jump: string | null;
  onJump: (jump: string | null) => void;
}

/** Which host the way to another one leads through, if any. */
export function JumpField({ host, jump, onJump }: JumpFieldProps) {
  const list = useHosts();
  const others = itemsOf(list.data)?.filter(({ name }) => name !== host) ?? [];
  return (
    <Choice
      label="Reached through"
      hint="A login goes to that jump host first, and from there to this address."
      none="No other host: workers connect to it themselves"
      value={jump ?? ''}
      options={others.map(({ name }) => [name, name] as const)}
      more={list}
      onChange={name => onJump(name || null)}
    />
  );
}
