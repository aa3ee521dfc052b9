/** A value that can be replaced while it is in use. */
export interface Live<T extends object> {
  /** Each read of a field returns the newest value. */
  readonly value: T;
  replace(next: T): void;
}

/** Makes a live value. `first` must have every field that a later value has. */
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
