import type { Random } from '../../src/ports/clock.ts';

const NAMES = [
  'mateo',
  'aisha',
  'oskar',
  'lucia',
  'peter',
  'farid',
  'nora',
  'igor',
  'sven',
  'chloe',
  'hassan',
  'bea',
];

/** The public key of a user, with a comment as users write it. */
export function keyOfSomebody(random: Random): string {
  const pick = (from: readonly string[]) => from[Math.floor(random.next() * from.length)] ?? '';
  const name = pick(NAMES);
  const comment = pick([
    '',
    `${name}@${pick(['example.com', 'mail.test', 'university.test'])}`,
    `${name}@${pick(['pc', 'zenbook', 'arch', 'fedora', 'xps13'])}`,
    `${name}@${pick(['pc', 'zenbook', 'arch', 'fedora', 'xps13'])}`,
    `${name}@MacBook-${pick(['Air', 'Pro'])}.local`,
    `${name}@DESKTOP-${random.bytes(4).toString('hex').slice(0, 7).toUpperCase()}`,
    `ubuntu@ip-172-31-${random.bytes(1)[0]}-${random.bytes(1)[0]}`,
  ]);
  const isRsa = random.next() < 0.2;
  // An odd modulus of 3072 bits, with the zero before it that RFC 4251 asks for.
  const modulus = Buffer.concat([
    Buffer.from([0, 0x80 | random.bytes(1).readUInt8()]),
    random.bytes(382),
    Buffer.from([1]),
  ]);
  const [type, fields] = isRsa
    ? (['ssh-rsa', [Buffer.from([1, 0, 1]), modulus]] as const)
    : (['ssh-ed25519', [random.bytes(32)]] as const);
  const blob = Buffer.concat([Buffer.from(type), ...fields].map(toSshString));
  return `${type} ${blob.toString('base64')} ${comment}`.trim();
}

function toSshString(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}
