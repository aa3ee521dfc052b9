import type { Draws } from '../transcript/draws.ts';

const PEOPLE = [
  'alex',
  'amir',
  'anna',
  'ben',
  'carla',
  'chen',
  'daniel',
  'dev',
  'dmitri',
  'elena',
  'emma',
  'felix',
  'grace',
  'hana',
  'hugo',
  'ines',
  'ivan',
  'jan',
  'jmiller',
  'joao',
  'julia',
  'kai',
  'kwame',
  'lea',
  'leo',
  'lin',
  'lucas',
  'maria',
  'mark',
  'maya',
  'mila',
  'nadia',
  'nico',
  'noah',
  'olga',
  'omar',
  'paul',
  'pierre',
  'priya',
  'rafael',
  'ravi',
  'sam',
  'sara',
  'sofia',
  'tariq',
  'theo',
  'tom',
  'wei',
  'yuki',
  'zoe',
];
const ACCOUNTS = ['root', 'ubuntu', 'admin', 'ec2-user', 'runner'];
const MACHINES = [
  'laptop',
  'desktop',
  'workstation',
  'thinkpad',
  'dev',
  'gpu-box',
  'lab',
  'nuc',
  'wsl',
  'tower',
];
const DOMAINS = ['gmail.com', 'outlook.com', 'proton.me', 'icloud.com', 'fastmail.com'];

/** A comment as `ssh-keygen` and people write it: `user@host`, sometimes a mail address, now and then none. */
export function drawKeyComment(draws: Draws, key: string): string {
  const label = `key comment/${key}`;
  const person = pick(draws, `${label}/person`, PEOPLE);
  const kind = draws.fraction(label);
  if (kind < 0.08) return '';
  if (kind < 0.22) return `${person}@${pick(draws, `${label}/domain`, DOMAINS)}`;
  if (kind < 0.4)
    return `${person}@${capital(person)}s-MacBook-${pick(draws, `${label}/mac`, ['Pro', 'Air'])}.local`;
  if (kind < 0.52) return `${person}@DESKTOP-${draws.hex(`${label}/windows`, 7).toUpperCase()}`;
  if (kind < 0.62)
    return `${pick(draws, `${label}/account`, ACCOUNTS)}@ip-10-0-${octet(draws, `${label}/c`)}-${octet(draws, `${label}/d`)}`;
  return `${person}@${pick(draws, `${label}/machine`, MACHINES)}`;
}

/** The types of keys, about as often as people have them. */
export function drawKeyType(draws: Draws, key: string): 'ed25519' | 'rsa' | 'ecdsa' {
  const share = draws.fraction(`key type/${key}`);
  if (share < 0.74) return 'ed25519';
  return share < 0.97 ? 'rsa' : 'ecdsa';
}

function pick(draws: Draws, label: string, from: readonly string[]): string {
  return from[Math.floor(draws.fraction(label) * from.length)] ?? '';
}

function octet(draws: Draws, label: string): number {
  return Math.floor(draws.fraction(label) * 256);
}

function capital(word: string): string {
  return `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;
}
