import type { OwnerRef } from '../../../orchestrator/model/platform-driver.ts';
import type { Ownership } from '../../ownership.ts';
import type { Owner, SandboxProvider } from '../../provider.ts';
import type { Occasion } from '../arming.ts';

export type FaultTarget = Pick<SandboxProvider, 'platform' | 'ownerOf' | 'wake' | 'changes'>;

/** Providers by name. */
export type Targets = ReadonlyMap<string, FaultTarget>;

/** What an occasion says of the owner of a machine or a volume. */
export type OwnerPart = Pick<Occasion, 'resource'> & Ownership;

export async function ownerPartOf(
  targets: Targets,
  provider: string,
  ref: OwnerRef | undefined,
): Promise<OwnerPart> {
  return toOwnerPart(ref === undefined ? undefined : await targets.get(provider)?.ownerOf(ref));
}

export function toOwnerPart(owner: Owner | undefined): OwnerPart {
  return { resource: owner?.id, account: owner?.account, alsoOf: owner?.alsoOf };
}
