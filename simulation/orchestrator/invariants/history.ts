import type { InstanceRecord, VolumeRecord } from '../../../src/orchestrator/model/records.ts';

/** A committed state of a row. */
export interface Version<Row = InstanceRecord> {
  at: number;
  record: Row;
}

/** Every committed state of every row, in order: what a reader can have seen. */
export class History {
  readonly #instances = new Map<string, Version[]>();
  readonly #idByRef = new Map<string, string>();
  readonly #volumes = new Map<string, Version<VolumeRecord>[]>();

  /** Returns the state before. */
  add(at: number, record: InstanceRecord): InstanceRecord | undefined {
    const versions = this.#instances.get(record.id) ?? [];
    const before = versions.at(-1)?.record;
    versions.push({ at, record });
    this.#instances.set(record.id, versions);
    this.#idByRef.set(record.ownerRef, record.id);
    return before;
  }

  /** Returns the state before. */
  addVolume(at: number, record: VolumeRecord): VolumeRecord | undefined {
    const versions = this.#volumes.get(record.id) ?? [];
    const before = versions.at(-1)?.record;
    versions.push({ at, record });
    this.#volumes.set(record.id, versions);
    return before;
  }

  /** The database went back to a time before its first commit. */
  forget(id: string): void {
    this.#instances.delete(id);
    this.#volumes.delete(id);
  }

  instances(): InstanceRecord[] {
    return [...this.#instances.values()].flatMap((versions) => versions.at(-1)?.record ?? []);
  }

  volumes(): VolumeRecord[] {
    return [...this.#volumes.values()].flatMap((versions) => versions.at(-1)?.record ?? []);
  }

  instance(id: string): InstanceRecord | undefined {
    return this.#instances.get(id)?.at(-1)?.record;
  }

  versions(id: string): readonly Version[] {
    return this.#instances.get(id) ?? [];
  }

  volume(id: string): VolumeRecord | undefined {
    return this.#volumes.get(id)?.at(-1)?.record;
  }

  /** When the instance or volume was written last. */
  lastWrite(id: string): number | undefined {
    return (this.#instances.get(id) ?? this.#volumes.get(id))?.at(-1)?.at;
  }

  /** When the instance or volume was written as gone for the first time; undefined: it lives. */
  end(id: string): number | undefined {
    const versions = this.#instances.get(id);
    if (versions !== undefined) return firstEnd(versions, ({ status }) => status === 'DESTROYED');
    return firstEnd(this.#volumes.get(id) ?? [], ({ deletedAt }) => deletedAt !== null);
  }

  byRef(ref: string): InstanceRecord | undefined {
    const id = this.#idByRef.get(ref);
    return id === undefined ? undefined : this.instance(id);
  }

  volumeByRef(ref: string): VolumeRecord | undefined {
    return this.volume(ref.replace(/^berth-/, ''));
  }

  /** The states that were current at some moment from `from` to `to`. */
  current(id: string, from: number, to: number): InstanceRecord[] {
    return during(this.versions(id), from, to);
  }

  /** {@link current}, of a volume. */
  currentVolume(id: string, from: number, to: number): VolumeRecord[] {
    return during(this.#volumes.get(id) ?? [], from, to);
  }
}

function firstEnd<Row>(versions: readonly Version<Row>[], isGone: (row: Row) => boolean): number | undefined {
  const last = versions.at(-1);
  return last !== undefined && isGone(last.record)
    ? versions.find(({ record }) => isGone(record))?.at
    : undefined;
}

function during<Row>(versions: readonly Version<Row>[], from: number, to: number): Row[] {
  return versions
    .filter(({ at }, index) => at <= to && (versions[index + 1]?.at ?? Number.POSITIVE_INFINITY) >= from)
    .map(({ record }) => record);
}
