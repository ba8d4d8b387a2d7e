import { nameOf, parentOf } from '../service/paths.ts';
import { Button } from '../ui/button.tsx';
import { useFocus } from '../ui/use-focus.ts';

interface UpButtonsProps {
  path: string;
  home: string | undefined;
  takesFocus: boolean;
  onGo: (path: string) => void;
  /** Where it failed. */
  onAgain?: () => void;
}

/** The ways on from a folder in which there is nothing to choose. */
export function UpButtons({ path, home, takesFocus, onGo, onAgain }: UpButtonsProps) {
  const first = useFocus<HTMLButtonElement>(takesFocus);
  const above = parentOf(path);
  const places = [
    ...(path === '/' ? [] : [{ to: above, name: `Up to ${nameOf(above) || '/'}` }]),
    ...(home === undefined || home === path ? [] : [{ to: home, name: 'Home' }]),
  ];
  return (
    <span class="row">
      {places.map(({ to, name }, n) => (
        <button
          key={to}
          ref={n === 0 ? first : undefined}
          type="button"
          class="button"
          data-size="small"
          title={to}
          onClick={() => onGo(to)}
        >
          {name}
        </button>
      ))}
      {onAgain && (
        <Button size="small" onClick={() => onAgain()}>
          Ask again
        </Button>
      )}
    </span>
  );
}
