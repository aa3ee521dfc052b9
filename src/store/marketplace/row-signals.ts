import type { SignalWriter, Store } from '../../marketplace/model/store.ts';

/** What one transaction tells once it is committed. */
export interface Told {
  /** Ids of deployments and volumes that it wrote. */
  changed: Set<string>;
  woken: Map<string, { providerId: string; subjectId: string }>;
}

/** As one text a process, which another process can take apart. */
const SEPARATOR = '@';

export function nothingTold(): Told {
  return { changed: new Set(), woken: new Map() };
}

export function signalWriter({ woken }: Told): SignalWriter {
  return {
    wake: async (providerId, subjectId) =>
      void woken.set(`${subjectId}${SEPARATOR}${providerId}`, { providerId, subjectId }),
  };
}

/** The texts by which other processes learn of it. */
export function toTexts({ changed, woken }: Told): string[] {
  return [...changed, ...woken.keys()];
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

  readonly onWake: Store['onWake'] = (woken) => {
    this.#workers.add(woken);
    return () => void this.#workers.delete(woken);
  };

  /** After a commit of this process. */
  tell({ changed, woken }: Told): void {
    for (const id of changed) this.#changed(id);
    for (const { providerId, subjectId } of woken.values()) this.#wake(providerId, subjectId);
  }

  /** After a commit of another process: its {@link toTexts}. */
  hear(texts: readonly string[]): void {
    for (const text of texts) {
      const at = text.indexOf(SEPARATOR);
      if (at === -1) this.#changed(text);
      else this.#wake(text.slice(at + 1), text.slice(0, at));
    }
  }

  /** Commits of other processes may have been missed. */
  missed(): void {
    for (const id of [...this.#watching.keys()]) this.#changed(id);
    for (const woken of [...this.#workers]) woken();
  }

  #changed(id: string): void {
    for (const changed of [...(this.#watching.get(id) ?? [])]) changed();
  }

  #wake(providerId: string, subjectId: string): void {
    for (const woken of [...this.#workers]) woken(providerId, subjectId);
  }
}
