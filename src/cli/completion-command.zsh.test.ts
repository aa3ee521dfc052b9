import { describeCompletion } from './completion.suite.ts';

describeCompletion('zsh');
