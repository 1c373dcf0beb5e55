extends Node
# Comes last in every physics tick, when the player has moved.

var target = null


func _physics_process(_delta):
	target.record()
