import type { Draws } from '../transcript/draws.ts';

const PEOPLE = ['alex', 'amir', 'anna', 'chen', 'elena', 'ivan', 'julia', 'maria', 'omar', 'priya', 'yuki'];

/** A comment as `ssh-keygen` writes it, `user@host`; now and then none. */
export function drawKeyComment(draws: Draws, key: string): string {
  const label = `key comment/${key}`;
  if (draws.fraction(label) < 0.08) return '';
  const person = PEOPLE[Math.floor(draws.fraction(`${label}/person`) * PEOPLE.length)];
  return `${person}@DESKTOP-${draws.hex(`${label}/host`, 7).toUpperCase()}`;
}
