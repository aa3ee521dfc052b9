import { marked, printedBy } from '../../scenarios/machine/printed.ts';
import type { Session } from '../../scenarios/session.ts';
import type { JsonObject } from '../../text/json.ts';
import { Draws } from '../../transcript/draws.ts';

/** How long one disk is read, and how much is written to it. */
const READ_S = 12;
const WRITTEN_BYTES = 16 * 1024 * 1024;
const BLOCK_BYTES = 4 * 1024 * 1024;
const MOST_DISKS = 2;
const PREFIX_CHARACTERS = 16;

/** The words that the monitor leaves on the disks of a provider's machines. */
export interface Markers {
  /** A regular expression of all markers. It does not match itself: a machine may log the commands that it is sent. */
  pattern: string;
  /** A new marker: letters and digits. */
  next: string;
}

/** Markers of a provider have a prefix that is drawn from the secret seed of the state, and a part that is drawn anew. */
export function markersOf(seed: string, provider: string, fresh: string): Markers {
  const prefix = new Draws(seed).hex(`${provider}/markers`, PREFIX_CHARACTERS);
  return {
    pattern: `${prefix.slice(0, -1)}[${prefix.slice(-1)}][0-9a-f]{32}`,
    next: `${prefix}${fresh.slice(0, 32)}`,
  };
}

/** Every marker in what `look` printed. */
export function markersIn(printed: string, { pattern }: Markers): string[] {
  return [...new Set(printed.match(new RegExp(pattern, 'g')) ?? [])];
}

/** The steps at which it looks. */
export const LOOK = 'remnants/look';

/**
 * Reads the raw blocks of the machine's disks for markers that were left on earlier machines, and then leaves one. Where raw
 * blocks cannot be read it is skipped.
 */
export async function searchAndLeave(
  session: Session,
  shown: JsonObject,
  { markers, onMarker }: { markers: Markers; onMarker: (marker: string) => void },
): Promise<void> {
  const list = quoted(session, 'lsblk -dbnro NAME,TYPE,SIZE');
  const listed = await session.login('remnants/disks', shown, 'first', { command: list });
  const disks = disksIn(printedBy(listed) ?? '');
  const sudo = listed.username === 'root' ? '' : 'sudo -n ';
  const readable = await readableOf(session, shown, disks, sudo);
  if (readable.length === 0) session.skip([LOOK], whyNot(disks));
  for (const disk of readable) await look(session, shown, { disk, sudo, markers });
  onMarker(markers.next);
  await session.login('remnants/write', shown, 'first', {
    command: `yes ${markers.next} | head -c ${WRITTEN_BYTES} > .${markers.next.slice(-8)} && sync`,
  });
}

/** A command between two drawn words. */
function quoted({ draws }: Session, command: string): string {
  return marked(command, [draws.hex('remnants/begin', 10), draws.hex('remnants/end', 10)]);
}

function whyNot(disks: readonly Disk[]): string {
  return disks.length === 0
    ? 'the machine lists no disks'
    : `the user of the machine may not read the raw blocks of ${disks.map(({ name }) => name).join(', ')}`;
}

interface Disk {
  name: string;
  bytes: number;
}

function disksIn(listed: string): Disk[] {
  return [...listed.matchAll(/^([a-z][a-z0-9]{1,15}) disk (\d{1,16})$/gm)]
    .map(([, name = '', bytes = '0']) => ({ name, bytes: Number(bytes) }))
    .slice(0, MOST_DISKS);
}

async function readableOf(
  session: Session,
  shown: JsonObject,
  disks: readonly Disk[],
  sudo: string,
): Promise<Disk[]> {
  const readable: Disk[] = [];
  for (const disk of disks) {
    const command = `${sudo}dd if=/dev/${disk.name} of=/dev/null bs=4096 count=1`;
    const { exitCode } = await session.login('remnants/read', shown, 'first', { command });
    if (exitCode === 0) readable.push(disk);
  }
  return readable;
}

/** Reads for some seconds from a drawn place. `tr` breaks the lines, since grep keeps a whole line in memory. */
async function look(
  session: Session,
  shown: JsonObject,
  { disk, sudo, markers }: { disk: Disk; sudo: string; markers: Markers },
): Promise<void> {
  const blocks = Math.floor(disk.bytes / BLOCK_BYTES);
  // Half of the time from the beginning, where file systems begin to write.
  const fraction = Math.max(0, session.draws.fraction(`remnants/${disk.name}`) * 2 - 1);
  const read = `${sudo}timeout -s INT ${READ_S} dd if=/dev/${disk.name} bs=${BLOCK_BYTES} skip=${Math.floor(blocks * fraction)}`;
  const search = `tr -cs '[:alnum:]' '\\n' | grep -oE '${markers.pattern}' | sort -u | head -n 20`;
  await session.login(LOOK, shown, 'first', {
    command: quoted(session, `{ ${read} 2>&3 | ${search}; } 3>&1`),
  });
}
