import type { Scheduler } from '../../test/support/time/scheduler.ts';
import type { Chance } from '../kernel/chance.ts';
import type { Bytes, Disk, Doer, EngineObserver, Guest, Machine } from './engine.ts';
import { guestOf } from './guest.ts';

interface Parts {
  scheduler: Scheduler;
  chance: Chance;
  observer: EngineObserver;
}

/** What an engine has now. */
interface View {
  machines(): readonly Machine[];
  disks(): Iterable<readonly [Bytes, Disk]>;
  /** The machines that run, what they boot from, and the cloud-init data that they were given. */
  running(): Iterable<{ id: string; bytes: Bytes | undefined; data(): string }>;
  /** Whether the guest of a machine runs, and has a network. */
  isUp(machine: Machine): boolean;
}

/** Compares an engine with what it was before, tells of each change, and says when the SSH of its guests answers. */
export class ChangeDetector {
  readonly #parts: Parts;
  readonly #view: View;
  readonly #boots = new Map<string, { guest: Guest; readyAt: number }>();
  #machines = new Map<string, Machine>();
  #disks = new Map<Bytes, Disk>();

  constructor(parts: Parts, view: View) {
    this.#parts = parts;
    this.#view = view;
  }

  /** The guest that booted last, and when its SSH answers. */
  bootOf(identity: string): { guest: Guest; readyAt: number } | undefined {
    return this.#boots.get(identity);
  }

  write({ host, name }: Disk, text: string): void {
    const found = [...this.#view.disks()].find(([, disk]) => disk.host === host && disk.name === name);
    if (found === undefined) return;
    const [bytes] = found;
    bytes.content = { ...bytes.content, written: [...bytes.content.written, text] };
    this.observe('a person');
  }

  observe(by: Doer): void {
    const { observer } = this.#parts;
    this.#bootGuests();
    const [machinesBefore, disksBefore] = [this.#machines, this.#disks];
    this.#machines = new Map(this.#view.machines().map((machine) => [machine.identity, machine]));
    this.#disks = new Map(this.#view.disks());
    for (const [identity, machine] of machinesBefore)
      if (!this.#machines.has(identity)) observer.changed({ what: 'machine removed', machine }, by);
    for (const [bytes, before] of disksBefore) {
      const disk = this.#disks.get(bytes);
      if (disk === undefined) observer.changed({ what: 'disk removed', disk: before }, by);
      else if (before.content.written.some((text) => !disk.content.written.includes(text)))
        observer.changed({ what: 'disk replaced', before, disk }, by);
    }
    for (const [identity, machine] of this.#machines) {
      if (!machinesBefore.has(identity)) observer.changed({ what: 'machine made', machine }, by);
      if (!this.#view.isUp(machine)) this.#boots.delete(identity);
      else if (!this.#boots.has(identity) && this.#hasBooted(machine))
        observer.changed({ what: 'machine booted', machine }, by);
    }
  }

  /** At its first boot a guest takes its keys from the cloud-init data, and keeps them on its disk. */
  #bootGuests(): void {
    for (const { id, bytes, data } of this.#view.running())
      if (bytes !== undefined && bytes.content.guest === undefined)
        bytes.content = { ...bytes.content, guest: guestOf(data(), id) };
  }

  #hasBooted({ identity, disk }: Machine): boolean {
    const { scheduler, chance } = this.#parts;
    const guest = disk?.content.guest;
    if (guest === undefined) return false;
    this.#boots.set(identity, { guest, readyAt: scheduler.now + chance.between(500, 15_000) });
    return true;
  }
}
