import type { Signal, SignalWriter, Store } from '../../marketplace/model/store.ts';

/** What one transaction tells once it is committed. */
export interface Told {
  /** Ids of deployments and volumes that it wrote. */
  changed: Set<string>;
  signals: Signal[];
}

/** Between the parts of a signal as text, which begins with its kind. */
const SEPARATOR = '@';

export function nothingTold(): Told {
  return { changed: new Set(), signals: [] };
}

export function signalWriter({ signals }: Told): SignalWriter {
  const add = (kind: Signal['kind']) => async (providerId: string, subjectId: string) =>
    void signals.push({ kind, providerId, subjectId });
  return { wake: add('wake'), ask: add('ask') };
}

/** The texts by which other processes learn of it. */
export function toTexts({ changed, signals }: Told): string[] {
  return [
    ...changed,
    ...signals.map(({ kind, subjectId, providerId }) => [kind, subjectId, providerId].join(SEPARATOR)),
  ];
}

/** Tells those in this process who watch a row or do a provider's work. */
export class RowSignals {
  readonly #watching = new Map<string, Set<() => void>>();
  readonly #workers = new Set<Parameters<Store['onWake']>[0]>();

  readonly watch: Store['watch'] = (subjectId, changed) => {
    const watching = this.#watching.get(subjectId) ?? new Set();
    this.#watching.set(subjectId, watching.add(changed));
    return () => {
      watching.delete(changed);
      if (watching.size === 0 && this.#watching.get(subjectId) === watching) this.#watching.delete(subjectId);
    };
  };

  readonly onWake: Store['onWake'] = (listener) => {
    this.#workers.add(listener);
    return () => void this.#workers.delete(listener);
  };

  /** After a commit of this process. `signals`: those of its kinds that were not told before. */
  tell({ changed, signals }: Told): void {
    for (const id of changed) this.#changed(id);
    this.wake(signals);
  }

  wake(signals: readonly Signal[]): void {
    for (const signal of signals) for (const listener of [...this.#workers]) listener(signal);
  }

  /** After a commit of another process: its {@link toTexts}. */
  hear(texts: readonly string[]): void {
    for (const text of texts) {
      const [kind = '', subjectId, providerId] = text.split(SEPARATOR);
      if (subjectId === undefined || providerId === undefined) this.#changed(kind);
      else this.wake([{ kind: kind === 'ask' ? 'ask' : 'wake', providerId, subjectId }]);
    }
  }

  /** Commits of other processes may have been missed. */
  missed(): void {
    for (const id of [...this.#watching.keys()]) this.#changed(id);
    for (const listener of [...this.#workers]) listener();
  }

  #changed(id: string): void {
    for (const changed of [...(this.#watching.get(id) ?? [])]) changed();
  }
}
