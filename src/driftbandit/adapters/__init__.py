"""Bandits in other libraries: each module needs the library of its name, which an extra of the same name installs.

`river` has policies for river, `openfeature` a provider of feature flags, `litellm` a chooser of deployments for
LiteLLM's router, and `gymnasium` the environments of this package as Gymnasium environments."""
