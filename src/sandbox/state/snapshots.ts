import { z } from '@hono/zod-openapi';
import { ApiError } from '../../contract/errors.ts';
import { nextTurn } from '../../ports/clock.ts';
import type { SandboxClock } from '../clock.ts';
import { BrokenConnection } from '../faults/connection.ts';

/** A part of a sandbox whose state can be saved and restored. Saved states are immutable. */
export interface Part<Saved = unknown> {
  /** Returns the state. Undefined during a change, when it cannot be saved. */
  save(): Saved | undefined;
  load(saved: Saved): void | Promise<void>;
}

export const snapshotSchema = z
  .object({
    name: z.string(),
    at: z.iso.datetime().meta({ description: 'The sandbox time of the snapshot.' }),
  })
  .meta({ id: 'Snapshot' });
export type Snapshot = z.infer<typeof snapshotSchema>;

interface Moment {
  at: number;
  parts: { part: Part; saved: unknown }[];
}

export class Snapshots {
  readonly #clock: SandboxClock;
  readonly #parts: readonly Part[];
  readonly #loaded: () => void;
  readonly #taken = new Map<string, Moment>();
  #first: Moment | undefined;
  #count = 0;

  /** Parts are loaded in order; then `loaded` is called. */
  constructor(clock: SandboxClock, parts: readonly Part[], loaded: () => void) {
    this.#loaded = loaded;
    this.#clock = clock;
    this.#parts = parts;
  }

  /** Saves the state that {@link reset} restores. */
  async begin(): Promise<void> {
    this.#first = await this.#save();
  }

  /** Restores the state at the start. Snapshots are kept. */
  async reset(): Promise<void> {
    const first = this.#first;
    if (first !== undefined) await this.#clock.exclusively(() => this.#load(first));
  }

  /** Takes a snapshot. It replaces one of the same name. */
  async take(name = `snapshot-${++this.#count}`): Promise<Snapshot> {
    const moment = await this.#clock.exclusively(async () => {
      await this.#clock.settle();
      return this.#save();
    });
    this.#taken.set(name, moment);
    return toSnapshot(name, moment);
  }

  /** @throws {ApiError} if no snapshot has the name */
  async restore(name: string): Promise<Snapshot> {
    const moment = this.#taken.get(name);
    if (moment === undefined) throw noSnapshot(name);
    await this.#clock.exclusively(() => this.#load(moment));
    return toSnapshot(name, moment);
  }

  list(): Snapshot[] {
    return [...this.#taken].map(([name, moment]) => toSnapshot(name, moment));
  }

  /** @throws {ApiError} if no snapshot has the name */
  remove(name: string): void {
    if (!this.#taken.delete(name)) throw noSnapshot(name);
  }

  /** Saves all parts at one moment, like a power cut. */
  async #save(): Promise<Moment> {
    for (;;) {
      const at = this.#clock.now();
      const parts = this.#parts.map((part) => ({ part, saved: part.save() }));
      if (parts.every(({ saved }) => saved !== undefined)) return { at, parts };
      await nextTurn();
    }
  }

  /** Loads a moment. Requests that wait for an answer belong to the replaced state: their connections break. */
  async #load({ at, parts }: Moment): Promise<void> {
    await this.#clock.settle();
    this.#clock.rewind(at, new BrokenConnection());
    for (const { part, saved } of parts) await part.load(saved);
    this.#clock.set(at);
    this.#loaded();
  }
}

const noSnapshot = (name: string) => new ApiError('not_found', `There is no snapshot ${name}.`);

function toSnapshot(name: string, { at }: Moment): Snapshot {
  return { name, at: new Date(at).toISOString() };
}
