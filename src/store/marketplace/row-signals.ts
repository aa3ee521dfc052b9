import type { Signal, SignalWriter, Store } from '../../marketplace/model/store.ts';

/** Notifications that one transaction sends after its commit. */
export interface Notifications {
  /** Ids of the deployments and volumes that it wrote. */
  changed: Set<string>;
  signals: Signal[];
}

/** Separates the parts of a signal as text. The first part is its kind. */
const SEPARATOR = '@';

export function noNotifications(): Notifications {
  return { changed: new Set(), signals: [] };
}

export function signalWriter({ signals }: Notifications): SignalWriter {
  const add = (kind: Signal['kind']) => async (providerId: string, subjectId: string) =>
    void signals.push({ kind, providerId, subjectId });
  return { wake: add('wake'), ask: add('ask') };
}

/** The texts that notify other processes. */
export function toTexts({ changed, signals }: Notifications): string[] {
  return [
    ...changed,
    ...signals.map(({ kind, subjectId, providerId }) => [kind, subjectId, providerId].join(SEPARATOR)),
  ];
}

/** Notifies watchers of a row, and provider workers, in this process. */
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

  /** Called after a commit of this process. */
  notify({ changed, signals }: Notifications): void {
    for (const id of changed) this.#changed(id);
    for (const signal of signals) this.#wake(signal);
  }

  /** Called after a commit of another process, with its {@link toTexts}. */
  receive(texts: readonly string[]): void {
    for (const text of texts) {
      const [kind = '', subjectId, providerId] = text.split(SEPARATOR);
      if (subjectId === undefined || providerId === undefined) this.#changed(kind);
      else this.#wake({ kind: kind === 'ask' ? 'ask' : 'wake', providerId, subjectId });
    }
  }

  /** Called when commits of other processes may have been missed. */
  missed(): void {
    for (const id of [...this.#watching.keys()]) this.#changed(id);
    for (const listener of [...this.#workers]) listener();
  }

  #wake(signal: Signal): void {
    for (const listener of [...this.#workers]) listener(signal);
  }

  #changed(id: string): void {
    for (const changed of [...(this.#watching.get(id) ?? [])]) changed();
  }
}
