import { userInfo } from 'node:os';
import type { Actor } from '../operator-kit/model.ts';

/** The user who runs this command. A user without a name, as in a container, is `operator`. */
export function localActor(name = userName()): Actor {
  return { name, source: 'cli', address: null };
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'operator';
  }
}
