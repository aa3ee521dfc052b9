import type { Random } from '../../ports/clock.ts';

/** Such as `dep-0f3c…`: 128 random bits. */
export function newId(
  random: Pick<Random, 'bytes'>,
  prefix: 'usr' | 'team' | 'key' | 'ssh' | 'dep' | 'vol' | 'seg' | 'txn' | 'mail' | 'disc' | 'alert',
): string {
  return `${prefix}-${random.bytes(16).toString('hex')}`;
}
