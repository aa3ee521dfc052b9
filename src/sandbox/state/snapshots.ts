import { z } from '@hono/zod-openapi';
import { nextTurn } from '../../ports/clock.ts';
import { Fatal } from '../../ports/errors.ts';
import type { SandboxClock } from '../clock.ts';
import { BrokenConnection } from '../faults/connection.ts';

/** Something of a sandbox that can be saved and become again what it was. What it saves is never changed. */
export interface Part<Saved = unknown> {
  /** Undefined: not now, it is in the middle of something. */
  save(): Saved | undefined;
  load(saved: Saved): void | Promise<void>;
}

export const snapshotSchema = z
  .object({
    name: z.string(),
    at: z.iso.datetime().meta({ description: 'The time of the sandbox in it.' }),
  })
  .meta({ id: 'Snapshot' });
export type Snapshot = z.infer<typeof snapshotSchema>;

interface Moment {
  at: number;
  parts: { part: Part; saved: unknown }[];
}

/** A moment that can be kept in a file. */
export interface SavedMoment {
  at: number;
  saved: unknown[];
}

/** What a sandbox was at some moments, in memory. */
export class Snapshots {
  readonly #clock: SandboxClock;
  readonly #parts: readonly Part[];
  readonly #loaded: () => void;
  readonly #taken = new Map<string, Moment>();
  #first: Moment | undefined;
  #count = 0;

  /** The parts are loaded in their order; then `loaded` is called. */
  constructor(clock: SandboxClock, parts: readonly Part[], loaded: () => void) {
    this.#loaded = loaded;
    this.#clock = clock;
    this.#parts = parts;
  }

  /** What {@link reset} goes back to. */
  async begin(): Promise<void> {
    this.#first = await this.#save();
  }

  /** Everything is as it was at the start; snapshots stay. */
  async reset(): Promise<void> {
    const first = this.#first;
    if (first !== undefined) await this.#clock.exclusively(() => this.#load(first));
  }

  /** What is now, for {@link load} of a sandbox that is made of the same. */
  async save(): Promise<SavedMoment> {
    await this.#clock.released();
    const { at, parts } = await this.#save();
    return { at, saved: parts.map(({ saved }) => saved) };
  }

  /** A real clock is not set back: the time until now has passed. */
  async load({ at, saved }: SavedMoment): Promise<void> {
    const parts = this.#parts.map((part, index) => ({ part, saved: saved[index] }));
    const now = this.#clock.kind === 'real' ? Math.max(at, this.#clock.now()) : at;
    await this.#clock.exclusively(() => this.#load({ at: now, parts }));
  }

  /** Another one of the same name is replaced. */
  async take(name = `snapshot-${++this.#count}`): Promise<Snapshot> {
    const moment = await this.#clock.exclusively(async () => {
      await this.#clock.settle();
      return this.#save();
    });
    this.#taken.set(name, moment);
    return toSnapshot(name, moment);
  }

  /** @throws {Fatal} if there is none of the name */
  async restore(name: string): Promise<Snapshot> {
    const moment = this.#taken.get(name);
    if (moment === undefined) throw new Fatal(`There is no snapshot ${name}.`);
    await this.#clock.exclusively(() => this.#load(moment));
    return toSnapshot(name, moment);
  }

  list(): Snapshot[] {
    return [...this.#taken].map(([name, moment]) => toSnapshot(name, moment));
  }

  /** Whether there was one. */
  remove(name: string): boolean {
    return this.#taken.delete(name);
  }

  /** All of it at one moment, as a power cut of everything would leave it. */
  async #save(): Promise<Moment> {
    for (;;) {
      const at = this.#clock.now();
      const parts = this.#parts.map((part) => ({ part, saved: part.save() }));
      if (parts.every(({ saved }) => saved !== undefined)) return { at, parts };
      await nextTurn();
    }
  }

  /** Requests that wait for an answer are of a time that there is no more: their connections break. */
  async #load({ at, parts }: Moment): Promise<void> {
    await this.#clock.settle();
    this.#clock.rewind(at, new BrokenConnection());
    for (const { part, saved } of parts) await part.load(saved);
    this.#clock.set(at);
    this.#loaded();
  }
}

function toSnapshot(name: string, { at }: Moment): Snapshot {
  return { name, at: new Date(at).toISOString() };
}
