import { useEffect } from 'preact/hooks';

const TYPES = ['dragover', 'drop'];

/** Beside where files are taken a browser would open one that is dropped, and leave the page. */
export function useStayOnDrop(): void {
  useEffect(() => {
    const stay = (event: Event) => event.preventDefault();
    for (const type of TYPES) addEventListener(type, stay);
    return () => {
      for (const type of TYPES) removeEventListener(type, stay);
    };
  }, []);
}
