/** A value that is replaced while it is in use. */
export interface Live<T extends object> {
  /** Its fields are those of the newest value, at each use. */
  readonly value: T;
  replace(next: T): void;
}

/** `first` has every field that a later value has. */
export function liveOf<T extends object>(first: T): Live<T> {
  let current = first;
  const value = {} as T;
  for (const key of Object.keys(first) as (keyof T)[])
    Object.defineProperty(value, key, { enumerable: true, get: () => current[key] });
  return {
    value,
    replace: (next) => {
      current = next;
    },
  };
}
