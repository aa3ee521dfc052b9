import { hold } from '../../kernel/violation.ts';
import { type Disk, isOf, type Machine } from '../engine.ts';

/** Something that a tenant wrote. */
export interface Writing {
  text: string;
  /** The instance or the volume that it was written to. */
  id: string;
}

/** The disks of a resource that are ours: those that are named after it, and the disk of its machine. */
export function copiesOf(id: string, disks: readonly Disk[], machines: readonly Machine[]): Disk[] {
  const own = machines
    .filter(({ ref, isCopy }) => isOf(id, ref) && !isCopy)
    .flatMap(({ disk }) => disk ?? []);
  const named = disks.filter(({ ref }) => isOf(id, ref));
  return [...named, ...own];
}

/** I37: what a tenant wrote is in a copy that is ours, until its end was asked for. */
export function bytesAreKept({ text, id }: Writing, copies: readonly Disk[], what: string): void {
  const isKept = copies.some(({ content }) => content.written.includes(text));
  hold('I37', isKept, () => `${what}, and what was written to ${id} is in no disk of it any more`, [id]);
}

/** I37: at rest a tenant finds on the disk of its instance or volume what it wrote. `disk`: undefined: it has none. */
export function bytesAreFound({ text, id }: Writing, disk: Disk | undefined): void {
  const isThere = disk?.content.written.includes(text) === true;
  hold(
    'I37',
    isThere,
    () =>
      `${id} has ${disk === undefined ? 'no disk' : `${disk.name} on ${disk.host}`}, without what was written to it`,
    [id],
  );
}
