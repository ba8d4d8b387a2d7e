import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { Button } from './button.tsx';
import { Problem } from './problem.tsx';
import { Wait } from './wait.tsx';

/** A component whose code is loaded when it is first shown. */
export function lazy<Props extends object>(
  load: () => Promise<ComponentType<Props>>,
): ComponentType<Props> {
  let loaded: ComponentType<Props> | undefined;
  return function Lazy(props: Props) {
    const [Shown, show] = useState<ComponentType<Props> | undefined>(() => loaded);
    const [error, setError] = useState<unknown>();
    useEffect(() => {
      if (Shown) return;
      load()
        .then(component => {
          loaded = component;
          show(() => component);
        })
        .catch(setError);
    }, [Shown]);
    if (Shown) return <Shown {...props} />;
    if (error !== undefined)
      return (
        <Problem error="This page could not be loaded.">
          <p>The service may have been updated meanwhile, or the connection is lost.</p>
          <p>
            <Button onClick={() => location.reload()}>Reload the page</Button>
          </p>
        </Problem>
      );
    return <Wait>Loading the page …</Wait>;
  };
}
